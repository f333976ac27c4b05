import { golden } from '../helpers/golden-rows.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import type { DoorName, Kind, Owed, Question } from './question.ts'

const tables = ['sql', 'panel', 'sql-refused', 'panel-refused'].map(
  (name) => golden(`doors/${name}`) as Readonly<Record<string, Question>>,
)
const everyMetric: Question = {
  ask: { metrics: {} },
  only: ['metric'],
  rows: [...catalogue.endpoints.keys()].toSorted().map((metric) => ({ metric })),
}

/** Every question by its kind and name. */
export const questions: ReadonlyMap<string, Question> = new Map(
  [...tables, { 'all of them': everyMetric }].flatMap((table) =>
    Object.entries(table).map(([name, one]): [string, Question] => [`${Object.keys(one.ask)[0]}: ${name}`, one]),
  ),
)

/** Where doors answer otherwise, and why they may; null where a question cannot be asked at all. */
export const exceptions = golden('doors/exceptions') as readonly {
  readonly why: string
  readonly doors: readonly DoorName[]
  readonly owed: Readonly<Record<string, Owed | null>>
}[]

/** What can be asked at a door; for everything else there is no word. */
export const asked: Readonly<Record<DoorName, readonly Kind[]>> = {
  command: ['sql', 'panel'],
  session: ['sql'],
  stamp: ['sql'],
  // It gives no rows: here it is asked what every door refuses.
  lookahead: ['sql'],
  serve: ['sql', 'panel', 'metrics'],
  mcp: ['sql', 'panel', 'universe', 'metrics'],
  library: ['sql', 'panel', 'join', 'points', 'calendar', 'universe', 'metrics'],
  python: ['sql', 'panel', 'join', 'points', 'calendar', 'universe', 'metrics'],
}
