/** A room's files and the tests that concern them, the cheap and the likely first; the first pattern that fits holds. */
const tests: readonly (readonly [pattern: RegExp, quick: string, dear?: string])[] = [
  [
    /views\/sql\/(?:10|11|12|13)_/,
    'views/cases views/objects',
    'views/joins-options views/clocks laws/L1-L6-views views/readers-trino laws/L1-lookahead',
  ],
  [/views\/sql\/parts\/(?:successions|stitched)/, 'views/identity', 'laws/L1-L6-views'],
  [/views\/sql\/1[56]_/, 'views/links views/links-oracle', 'views/objects views/cases views/clocks laws/L1-L6-views'],
  [
    /views\/sql\/2\d_|views\/ledger-tables/,
    'views/ledger-time views/cases',
    'views/objects views/changed views/build laws/L1-clock-ledger laws/L1-L6-views',
  ],
  [/views\/sql\/50_/, 'views/cases', 'views/joins-time views/notes'],
  [/views\/sql\/51_/, 'views/cases views/resample', 'views/joins-options views/joins-time laws/L1-L6-views'],
  [
    /views\/sql\/5\d_|views\/joins/,
    'views/cases views/joins-options views/joins-time views/joins-oracle',
    'laws/L1-L6-views',
  ],
  [/views\/sql\/8[01]_/, 'views/cases views/universe', 'laws/L1-L6-views laws/L1-clock-registry'],
  [/views\/(?:described|dbt)/, 'views/dbt', 'views/objects'],
  [
    /views\/sql\/[78]\d_/,
    'views/cases views/two-apis views/links',
    'laws/L1-L6-views laws/L1-clock-registry views/little views/registry-merged',
  ],
  [/views\/(?:template|compile)/, 'views/cases views/clocks', 'views/build laws/L1-L6-views laws/L1-lookahead'],
  [/views\//, 'views/cases views/folders', 'views/recent views/build laws/L1-L6-views'],
  [/points\/sql\/(?:by_value|conflicts)/, 'unit/convert-poison unit/convert-values unit/convert', 'unit/convert-fuzz'],
  [
    /points\//,
    'unit/convert unit/convert-values unit/convert-time unit/convert-overlap unit/convert-batch',
    'unit/points-files unit/convert-poison unit/output laws/L2-time unit/convert-fuzz laws/L2-verify laws/L5-clocks',
  ],
  [/features\//, 'cli/features', 'laws/L4-features'],
  [/registry\/universe/, 'views/two-apis unit/registry-reading', 'cli/commands cli/registry'],
  [
    /registry\//,
    'unit/registry-held unit/registry-dated unit/registry-history unit/registry-reading',
    'laws/L4-registry unit/registry-snapshot-and-sync',
  ],
  [
    /upkeep\/sql\/(?:redated|changed)/,
    'laws/L6-compact',
    'laws/L2-time laws/L6-layouts views/recent laws/L1-clock-ledger',
  ],
  [
    /upkeep\/(?:sql\/(?:superseded|unproved)|merge-recent|encode)/,
    'unit/merge',
    'views/registry-merged laws/L6-compact views/recent',
  ],
  [/upkeep\/adopt/, 'unit/adopt-cover laws/L2-adopt-registry', 'laws/L2-adopt'],
  [
    /upkeep\/(?:clock-\w+|archive)/,
    'laws/L1-clock-registry',
    'laws/L1-clock-ledger laws/L1-clock-ahead laws/L6-growth',
  ],
  [/upkeep\/forget/, 'unit/forget unit/doctor', 'laws/L2-remedies laws/L2-accepted'],
  [/upkeep\//, 'unit/merge-facts unit/merge-plan unit/merge', 'laws/L6-compact laws/L6-layouts unit/doctor'],
  [/door\//, 'unit/query-gate cli/mcp cli/serve'],
  [/publish\/readers/, 'views/readers-trino', 'views/readers laws/L1-publish'],
  [
    /publish\//,
    'unit/publish-ranges unit/publish-log unit/publish-tables',
    'laws/L1-publish cli/publish laws/L6-publish laws/L6-published-vacuum laws/L6-pull',
  ],
  [
    /ledger\/(?:archive|fold|news|version-changes|datings)/,
    'unit/held unit/commit unit/ledger',
    'unit/merge views/recent views/changed laws/L1-clock-ledger laws/L6-growth laws/L6-stamp',
  ],
  [
    /ledger\//,
    'unit/index-rows unit/held unit/coverage unit/journal unit/commit unit/plan',
    'unit/proven unit/ledger unit/migrate unit/status laws/L5-again laws/L5-refusals',
  ],
  [/certificate\/|heads\/|merkle\//, 'unit/chains unit/merkle', 'laws/L6-certificate'],
  [/own\//, 'laws/L1-own', 'laws/L2-own'],
  [/report\/audit/, 'unit/audit', 'page/static unit/status'],
  [/lookahead\/|query\/registry-objects/, 'unit/lookahead-states', 'views/notes cli/lookahead laws/L1-lookahead'],
  [/query\/panel/, 'views/panel views/universe', 'unit/query-api laws/L1-lookahead'],
  [/results\/explain/, 'laws/L6-stamp', 'laws/L6-explain'],
  [/results\/stress/, 'unit/stress-verdict', 'cli/stress views/stress-delays'],
  [/results\//, 'unit/merge-plan', 'laws/L6-stamp laws/L6-compact'],
  [/query\/json-lines/, 'unit/json-lines', 'unit/query-output'],
  [
    /query\//,
    'unit/query-session unit/query-output unit/query-lake',
    'unit/json-lines unit/query-api views/notes views/changed unit/query-gate',
  ],
  [/metrics\//, 'unit/metadata', 'laws/L2-verify laws/L5-metadata cli/limits'],
  [/store\//, 'unit/engine unit/points-files', 'unit/ledger unit/merge-plan'],
  [/index\.ts$/, 'unit/query-api', 'views/two-apis'],
]

/** The test files that concern a file of `src/`: those that all mutants meet, and those for what survives them. */
export function testsOf(file: string): readonly [quick: readonly string[], dear: readonly string[]] {
  const [, quick = '', dear = ''] = tests.find(([pattern]) => pattern.test(file)) ?? []
  const paths = (names: string): string[] =>
    names
      .split(' ')
      .filter(Boolean)
      .map((name) => `test/${name}.test.ts`)
  return [paths(quick), paths(dear)]
}

/** The room of a file of `src/`. */
export function roomOf(file: string): string {
  return /^src\/([\w-]+)\//.exec(file)?.[1] ?? 'index'
}
