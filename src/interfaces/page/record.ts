import { markRoot, pageFiles } from './files.ts'

type Rows = readonly Readonly<Record<string, unknown>>[]
/** Queries the lake, records the answer, and returns its rows. */
type RecordRows = (sql: string, asOf: string) => Promise<Rows>
/** Records an answer, which is JSON text, under its query and instant. */
type RecordAnswer = (sql: string, asOf: string, answer: string) => Promise<void>

/** Series that a chart shows. */
interface Picked {
  readonly interval: string
  readonly metric: { readonly metric: string; readonly revisable: boolean }
  readonly component: string
}

type Range = readonly [from: number, to: number]

/** Queries of the page; the module runs in browsers, too. */
interface Questions {
  readonly metricsOf: (rows: RecordRows, byCoverage: boolean) => Promise<readonly { readonly metric: string }[]>
  readonly chosen: (all: readonly unknown[], state: object) => Picked
  readonly columnsSql: (picked: Picked, range: Range, columns: number) => string
  readonly extentSql: (picked: Picked) => string
  readonly componentSql: (picked: Picked) => string
  readonly disputesSql: (picked: Picked, range: Range) => string
  readonly vintageRangeSql: (picked: Picked) => string
  readonly vintagesSql: (picked: Picked, range: Range, known: Range, columns: number) => string
  readonly endOf: (t: number, interval: string) => number
  readonly isoOf: (ms: number) => string
  readonly nameOf: (sql: string, asOf: string) => string
  readonly productsSql: string
  readonly historySql: (product: string | null) => string
  readonly registrySql: string
  readonly monthsSql: string
  readonly countsSql: string
}

/** Input of the export of a folder. */
interface RecordInput {
  /** Queries the lake; the answer is JSON text, as from `/query`. */
  readonly query: (sql: string, asOf: string) => Promise<string>
  /** Writes a file of the folder. */
  readonly put: (name: string, text: string) => Promise<void>
  /** Timestamp up to which everything is shown. */
  readonly wall: string
  readonly lake: object
  /** Metrics to draw; all that are stored if none is named. */
  readonly metrics: readonly string[]
  /** Number of timestamps on the slider. */
  readonly instants: number
}

/** The file of a folder that names the version of the lake. */
export const indexFile = 'data/index.json'

/** Columns of pixels in a chart of an exported folder. */
const columns = 800
const minute = 60_000

/** Writes the page with the answers to all its queries for charts, universe and coverage: it needs no server then. */
export async function recordPage(input: RecordInput): Promise<{ readonly files: number; readonly charts: number }> {
  const { put, wall, lake } = input
  const url = new URL('shared/questions.js', import.meta.url).href
  const questions = (await import(url)) as Questions
  const text = new TextDecoder()
  for (const { name, bytes } of await pageFiles())
    await put(name, text.decode(name === 'index.html' ? markRoot(bytes, 'data-recorded') : bytes))
  const writtenNames = new Set<string>()
  const recordAnswer: RecordAnswer = async (sql, asOf, answer) => {
    const name = questions.nameOf(sql, asOf)
    if (!writtenNames.has(name)) await put(`data/${name}.json`, answer)
    writtenNames.add(name)
  }
  const recordRows: RecordRows = async (sql, asOf) => {
    const answer = await input.query(sql, asOf)
    await recordAnswer(sql, asOf, answer)
    return JSON.parse(answer) as Rows
  }
  const charts = await chartsOf(input, questions, recordRows)
  const instants = instantsOf(charts, input.instants, questions)
  for (const { picked, range } of charts) {
    await recordRows(questions.disputesSql(picked, range), '')
    const statements = [questions.columnsSql(picked, range, columns)]
    if (picked.metric.revisable && picked.component === '') {
      const [vintages] = await recordRows(questions.vintageRangeSql(picked), '')
      const vintageRange: Range = [Number(vintages?.['a0']), Number(vintages?.['a1'])]
      statements.push(questions.vintagesSql(picked, range, vintageRange, columns))
    }
    await Promise.all(statements.flatMap((sql) => ['', ...instants].map(async (at) => recordRows(sql, at))))
  }
  await recordTables(questions, instants, { recordRows, recordAnswer })
  const metrics = charts.map(({ picked }) => picked.metric.metric)
  await put(indexFile, JSON.stringify({ lake, wall, instants, columns, charts: metrics }))
  return { files: writtenNames.size, charts: charts.length }
}

interface Chart {
  readonly picked: Picked
  readonly range: Range
  /** Range in which its points became known. */
  readonly known: Range
}

/** Builds the content of each chart whose address names only its metric. */
async function chartsOf(
  { metrics }: RecordInput,
  questions: Questions,
  recordRows: RecordRows,
): Promise<readonly Chart[]> {
  const all = await questions.metricsOf(recordRows, false)
  const wantedCharts = all.filter(({ metric }, n) => metrics.length === 0 || n === 0 || metrics.includes(metric))
  const charts: Chart[] = []
  for (const { metric } of wantedCharts) {
    const state = { metric, assets: '', component: '', sessions: '' }
    let picked = questions.chosen(all, state)
    let [extent] = await recordRows(questions.extentSql(picked), '')
    if (extent?.['t0'] !== null && extent?.['value_count'] === 0) {
      const [component] = await recordRows(questions.componentSql(picked), '')
      picked = questions.chosen(all, { ...state, component: component?.['name'] ?? '' })
      ;[extent] = await recordRows(questions.extentSql(picked), '')
    }
    const [t0, t1, a0, a1] = ['t0', 't1', 'a0', 'a1'].map((name) => Number(extent?.[name]))
    if (t0 === undefined || t1 === undefined || a0 === undefined || a1 === undefined || extent?.['t0'] === null)
      continue
    charts.push({ picked, range: [t0, questions.endOf(t1, picked.interval)], known: [a0, a1] })
  }
  return charts
}

/** Spreads instants from the first arrival to the last, on whole minutes. */
function instantsOf(charts: readonly Chart[], count: number, { isoOf }: Questions): readonly string[] {
  if (charts.length === 0) return []
  const from = Math.min(...charts.map(({ known }) => known[0]))
  const to = Math.max(...charts.map(({ known }) => known[1]))
  const at = (n: number): number => Math.ceil((from + ((to - from) * n) / count) / minute) * minute
  return Array.from({ length: count }, (_, n) => isoOf(at(n)))
}

/** Records the universe and the coverage at each instant, and the history of each product once. */
async function recordTables(
  questions: Questions,
  instants: readonly string[],
  { recordRows, recordAnswer }: { readonly recordRows: RecordRows; readonly recordAnswer: RecordAnswer },
): Promise<void> {
  await recordRows(questions.registrySql, '')
  const statements = [questions.productsSql, questions.monthsSql, questions.countsSql]
  for (const at of ['', ...instants]) await Promise.all(statements.map(async (sql) => recordRows(sql, at)))
  const versions = Map.groupBy(await recordRows(questions.historySql(null), ''), ({ id }) => String(id))
  for (const [product, rows] of versions) await recordAnswer(questions.historySql(product), '', JSON.stringify(rows))
}
