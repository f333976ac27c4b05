/** How the rows of one cut-off differ. */
interface CutStory {
  /** Milliseconds since 1970. */
  readonly cutoff: number
  /** The same as ISO text with microseconds. */
  readonly at: string
  /** The instant of the first row on the whole lake. */
  readonly first: number
  readonly differing: number
  readonly missing: number
  readonly extra: number
  /** Instant of the earliest row that differs. */
  readonly earliest: number
  /** Nothing differs but the last digits of doubles: sums in another order, not the future. */
  readonly rounding: boolean
}

const registryThen = /\b(pit_universe|history\s*\.|snapshots\s*\.)/i
const ownGrid = /\b(calendar|generate_series|range|pit_join|pit_long|pit_window)\s*\(/i
const day = 86_400_000

/** The likely cause of a look-ahead, from what the query says and from how its rows differ; `tables` are the registry's. */
export function likelyCause(sql: string, ts: string, stories: readonly CutStory[], tables: readonly string[]): string {
  const text = sql.replaceAll(/--[^\n]*|\/\*[\s\S]*?\*\//g, ' ')
  const changed = stories.reduce((sum, story) => sum + story.differing - story.missing - story.extra, 0)
  const registryNow = new RegExp(`\\b(${[...tables, 'universe'].join('|')})\\b`, 'i')
  if (registryNow.test(text) && !registryThen.test(text))
    return 'survivors only: the registry as it is now, applied to earlier dates (use pit_universe)'
  if (changed === 0 && stories.every((story) => story.extra === 0) && !ownGrid.test(text))
    return 'the rows themselves come from the future: the grid is taken from points (use calendar)'
  if (stories.every((story) => story.extra > 0 && story.extra === story.differing))
    return 'rows are left out because of what came later: keep what is not known yet out of the join or subquery (available_at <= ts in ON), not out of its rows'
  if (/\bfollowing\b|\blead\s*\(/i.test(text))
    return 'a window that reaches ahead of its row (FOLLOWING or lead: centred window)'
  if (/\basset\s+in\s*\(\s*(?:select|from)\b[^()]*\b(?:points|components|series)\b|\bsemi\s+join\b/i.test(text))
    return 'survivors only: assets chosen by what became of them later, applied to earlier dates (choose them as of each decision)'
  if (
    ofWholeSample(text, ts) ||
    (stories.every(({ cutoff, earliest, first }) => cutoff > first && (cutoff - earliest) / (cutoff - first) > 0.8) &&
      stories.some(({ cutoff, first }) => cutoff - first > 60 * day))
  )
    return 'a statistic of the whole sample, given to every row (use a window that ends at the row, such as pit_window)'
  if (/\bts\s*[-+]\s*(?:interval\b|to_(?:hours|minutes|days|seconds)\s*\()/i.test(text) && /\bpit_/i.test(text))
    return 'the decisions of a join were moved: it answers for another instant than the row has (join at ts, use latency)'
  const reach = Math.max(...stories.map((story) => story.cutoff - story.earliest))
  if (/date_trunc|time_bucket|month|week|year|quarter/i.test(text) && reach > 2 * day)
    return 'an aggregate of a whole week, month or year, given to the days inside it'
  return 'joined on t: the value of an interval, used before it was known (use pit_join, or join on available_at)'
}

/** Whether a window looks at rows of all times: neither ordered by the instant of a row nor among those of one instant. */
function ofWholeSample(text: string, ts: string): boolean {
  const windows = text.matchAll(/(?:\bover|\bwindow\s+\w+\s+as|,\s*\w+\s+as)\s*\(([^()]*)\)/gi)
  return [...windows].some(
    ([whole, spec = '']) =>
      (/^over/i.test(whole) || /\b(?:partition|order)\s+by\b/i.test(spec)) &&
      !new RegExp(`\\b(?:${ts.replaceAll(/\W/g, '.')}|t)\\b`, 'i').test(spec),
  )
}
