// docs/proof.md, from what the rows came to: results.json, which a run writes.

const head = `# Published results, reproduced

\`npm run reproduce\` runs each [row](../scripts/reproduce/rows) with the package's own controller on
[simulated servers](simulator.md), and writes this page; the tests run a short form.
"Published" is what others reported, "reference" what an independent simulation in another language found, "ours" what this version does, and
"control" what a row compares with, so that it can fail. A figure is never tuned to: where it cannot be reproduced, the row says so, and why.
`;

const traps = `## Traps

* The VTC scheduler stands inside its engine, and sees whether the next request fits. Here a request that does not fit stands at
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
