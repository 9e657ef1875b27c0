/** The figures that a model server may report for each rank: the keys of `RankLoad`. */
export const rankFigures = [
  'activeDecodeBlocks',
  'kvUsedBlocks',
  'activePrefillTokens',
  'totalBlocks',
  'maxNumBatchedTokens',
] as const;
