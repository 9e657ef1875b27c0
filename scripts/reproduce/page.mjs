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
  figures were made so. Its files mix runs of 360 s and of 600 s, and accumulated differences under FCFS grow with the length of a run.
* The VTC scheduler stands inside its engine, and sees whether the next request fits. A gateway cannot: here a request that does not fit stands at
  the server's door, alone, until it does.
* The steps of an engine are simulated as a line in batch size, resident tokens and prompt tokens. Networks, tokenizers, caches of prefixes,
  speculative decoding and the noise of a shared machine are not. [A log](capacity.md#from-a-log-of-yesterday) fits a model to measured times.
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
  const holding = played.filter(({ outcome }) => outcome.holds).length;
  return [head, `${holding} of ${played.length} rows hold.\n`, ...played.map(section), traps].join('\n');
}
