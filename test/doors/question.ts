/** A value as every door may tell it: instants are texts in UTC, whole numbers beyond 2^53 texts. */
export type Value = string | number | boolean | null | readonly Value[] | { readonly [name: string]: Value }

/** A row by the names of its columns. */
export type Told = Readonly<Record<string, Value>>

/** What is said with a question; names are in snake case, values such as JSON has. */
export type Given = Readonly<Record<string, Value>>

/** What is asked. */
export type Ask =
  | { readonly sql: string }
  | { readonly panel: Given }
  | { readonly join: Given }
  | { readonly points: Given }
  | { readonly calendar: Given }
  | { readonly universe: { readonly ts: string; readonly condition?: string } }
  | { readonly metrics: { readonly match?: string } }
export type Kind = Ask extends infer One ? (One extends unknown ? keyof One : never) : never

/**
 * A note: its code, what it is about, and its words; `{option a=b}` stands for an option as it is typed at the door.
 */
export type OwedNote = readonly [code: string, subject: string, words: string]

/** What every door owes: rows and notes, or the words of a refusal. */
export interface Owed {
  readonly rows?: readonly Told[]
  readonly notes?: readonly OwedNote[]
  readonly refused?: string
}

/** A question. */
export interface Question extends Owed {
  readonly ask: Ask
  readonly knowledge?: Given
  /** Columns that are compared; all where none are named. */
  readonly only?: readonly string[]
}

/** What a door says. */
export interface Said {
  readonly rows?: readonly Told[]
  readonly notes?: readonly string[]
  /** Notes as data, where a door tells them so. */
  readonly noted?: readonly { readonly code: string; readonly subject: string }[]
  readonly refused?: string
}

/** Every door. */
export type DoorName = 'command' | 'session' | 'stamp' | 'lookahead' | 'serve' | 'mcp' | 'library' | 'python'

/** A place where the lake is asked. */
export interface Door extends AsyncDisposable {
  readonly name: DoorName
  /** How an option is typed there. */
  readonly spelt: (option: string, value: string | undefined) => string
  readonly ask: (question: Question) => Promise<Said>
}

/** Where the lake is, and a folder for what the doors write. */
export interface Place {
  readonly home: string
  readonly root: string
}

/** What a question's answer is to look like at a door. */
export function owedAt({ spelt }: Pick<Door, 'spelt'>, { rows, notes = [], refused }: Owed): Said {
  const words = (text: string): string =>
    text.replaceAll(/\{option (\w+)(?:=(\w+))?\}/g, (_, option: string, value?: string) => spelt(option, value))
  if (refused !== undefined) return { refused: words(refused) }
  const noted = notes.map(([code, subject]) => ({ code, subject }))
  return { ...(rows && { rows }), notes: notes.map(([, , text]) => words(text)), noted }
}

/** The same of what it says: of rows the columns that count, of notes code and subject. */
export function saidOf({ rows, notes, noted, refused }: Said, { only }: Pick<Question, 'only'>): Said {
  if (refused !== undefined) return { refused }
  const cut = (row: Told): Told =>
    only === undefined ? row : Object.fromEntries(only.map((name) => [name, row[name] ?? null]))
  return {
    ...(rows && { rows: rows.map(cut) }),
    ...(notes && { notes }),
    ...(noted && { noted: noted.map(({ code, subject }) => ({ code, subject })) }),
  }
}
