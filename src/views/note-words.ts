/**
 * The words of every note, the same for people, agents and programs. `{name}` is one of its figures or its `subject`;
 * `{near}` what may have been meant, else what there is, `{such}` two of what there is; `{option a=b}` is spelt as whoever asked would type it.
 */
export const noteWords = {
  'unknown-metric': "unknown metric '{subject}'{near}",
  'nothing-held': "the lake holds nothing of '{subject}': fetch it first",
  'no-interval': "'{subject}' is not held at {interval}{near}",
  'no-asset': "nothing is held of '{subject}' for asset '{asset}'{near}",
  'no-dimension': "nothing is held of '{subject}' with {dimension} '{value}'{near}",
  'plain-numbers': "'{subject}' holds plain numbers: ask it without #{component}",
  'whole-object': "'{subject}' holds objects or lists: ask for a part of them{such}",
  'no-component': "'{subject}' has no part '{component}'{near}",
  'price-view': '{subject} is a view of its own, not a metric of points: FROM {subject}',
  'unknown-asset': "'{subject}' is no asset{near}",
  'no-member': 'no product met {option universe} at any of the instants: {subject}',
  'before-registry': 'the registry knows nothing before its first snapshot, {start}',
  'no-registry': 'the registry knows nothing before its first snapshot: there is none',
  'registry-unknown':
    'the registry is not known at this as_of: it is known since {start}; {option registry_backfill=true} lets its earliest state stand in',
  'registry-empty':
    'the registry is not known at this as_of: it holds no snapshot known by then; {option registry_backfill=true} lets its earliest state stand in',
  'registry-assumed':
    'the registry is known since {start}: what is told of it at this as_of is assumed from its earliest state',
  'unknown-then': "nothing of '{subject}' was known at this as_of",
  'ledger-then':
    "'{subject}' tells what this lake did, and stands at as_of here: by then there was nothing of it; `--ledger now`, where this door is started, opens the rest",
  'before-first': "nothing of '{subject}' was known before {start}",
  'held-between': "'{subject}' is held from {first} to {last}",
  'reversed-calendar': 'calendar from {since} until {until} holds no instants: the two are reversed',
  unnoted: 'what else there is to note could not be found out ({subject}): please report it',
  'beyond-settled':
    "decisions later than what is settled of '{subject}' get its newest value: {decisions}, from {since} on; {option beyond=null}, in SQL `beyond := 'null'`, gives NULL",
} as const satisfies Readonly<Record<string, string>>

/** What kind of thing a note tells. */
export type NoteCode = keyof typeof noteWords
