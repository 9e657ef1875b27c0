// docs/proof.md, from what the rows came to: results.json, which a run writes.

const head = `# Published results, reproduced

\`npm run reproduce\` runs each row with the package's own controller on simulated servers, and writes this page. A short form of each
runs in the tests, which fail when it comes to something else than what the run of this page noted. "Published" is what others reported,
"reference" what an independent simulation in another language found, and "ours" what this version does with policies of the package. "Control"
is what a row compares with, so that it can fail. A figure is never tuned to: where it cannot be reproduced, the row says so, and why.

[Simulator](simulator.md) says how such a run is written down; the scenario files are in
[examples/scenarios](../examples/scenarios), the rows in [scripts/reproduce/rows](../scripts/reproduce/rows).
`;

const traps = `## Traps

* The VTC artifact smears the cost of a prompt evenly over the decode phase of its answer. The measure here does the same, because the published
  figures were made so. It is an effect of measuring, not of scheduling.
* The artifact's files mix runs of 360 s and of 600 s. Accumulated differences under FCFS grow with the length of a run.
* All answers of its synthetic workloads have 256 tokens. Only the real trace tests a prediction.
* The VTC scheduler stands inside its engine, and sees whether the next request fits. A gateway cannot: here the request that was dispatched and
  does not fit stands at the server's door, alone, until it does.
* What is simulated: the steps of an engine as a line in batch size, resident tokens and prompt tokens. Not modelled are networks, tokenizers,
  caches of prefixes, speculative decoding, and noise of a shared machine. [Capacity planning](capacity.md#from-a-log-of-yesterday) fits a model to measured
  times.
`;

const section = ({ id, title, source, published, reference, check, outcome }) => `## ${id}: ${title}

| | |
|---|---|
| source | ${source} |
| published | ${published} |
| reference | ${reference} |
| **ours** | ${outcome.ours} |
${outcome.control === undefined ? '' : `| control | ${outcome.control} |\n`}| check | ${check}: **${outcome.holds ? 'holds' : 'does not hold'}** |
${outcome.note === undefined ? '' : `\n${outcome.note}\n`}`;

/** `results` by the IDs of rows. */
export function page(rows, results) {
  const played = rows.map((row) => ({ ...row, outcome: results[row.id].full }));
  const summary = played.map(
    ({ id, title, outcome }) =>
      `| [${id}](#${anchor(`${id}: ${title}`)}) | ${title} | ${outcome.holds ? 'holds' : '**does not hold**'} |`,
  );
  return [head, ['| | | check |', '|---|---|---|', ...summary, ''].join('\n'), ...played.map(section), traps].join(
    '\n',
  );
}

/** As GitHub makes them. */
function anchor(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s-]/gu, '')
    .replaceAll(' ', '-');
}
