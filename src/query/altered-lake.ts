import { requireFileError } from '../lake/store/file-errors.ts'
import { resolve } from 'node:path'
import type { Engine } from '../lake/store/engine.ts'
import { readText } from '../lake/store/files.ts'
import { inLake, places } from '../lake/store/layout.ts'
import { alteredScript, type IsNeeded, partOfScript } from './views/script.ts'
import { refuseChanged } from './changed-files.ts'
import { movedScript } from './moved-script.ts'
import { closing, openQuery, type SessionOptions, strangeViews } from './lake.ts'

/*
 * A lake whose points are others than those that it holds: later known, without some, with other values. Its views are
 * those of `lake.sql` over other points, in a session of its own or in a throw-away database; nothing is copied, and
 * the lake's own files are only read.
 */

/** Options of a session over a lake with other points. */
export interface AlteredOptions extends SessionOptions {
  /** Tells whether a view or macro is made, by its name and schema; by default each is. */
  readonly needed?: IsNeeded
}

/**
 * Opens the lake in a folder with `points` in the place of its stored points: a SELECT of the same columns with
 * `{{real}}` once for the real relation, such as `SELECT real.* REPLACE (real.available_at + INTERVAL 1 DAY AS
 * available_at) FROM {{real}} AS real`. It may ask for session variables. All views and joins read these, and are cut
 * behind them. With `script` it alters the views of an earlier version, with `into` it makes a database file in which
 * anyone's DuckDB finds that lake. Close it when done.
 */
export async function openAltered(dataFolder: string, points: string, options: AlteredOptions = {}): Promise<Engine> {
  const engine = await openIfAlterable(dataFolder, points, options)
  if (engine !== undefined) return engine
  throw strangeViews(resolve(dataFolder), 'views that this program made', 'those of another version of it')
}

/** Opens such a lake; undefined if its views are not those that this program makes. */
export async function openIfAlterable(
  dataFolder: string,
  points: string,
  { needed, ...options }: AlteredOptions = {},
): Promise<Engine | undefined> {
  const folder = resolve(dataFolder)
  const hasOwnScript = options.script === undefined
  const whole = options.script ?? (await ownScript(folder))
  const script = alteredScript(needed === undefined ? whole : partOfScript(whole, needed), points)
  if (script === undefined) return undefined
  const engine = await openQuery(folder, { ...options, script })
  return closing(engine, async () => {
    if (hasOwnScript) await refuseChanged(engine, folder)
    return engine
  })
}

/** Reads the text of the lake's views, with its files where they are now. */
export async function ownScript(folder: string): Promise<string> {
  const moved = await movedScript(folder)
  if (moved !== undefined) return moved
  return await readText(inLake(folder, places.script)).catch((cause: unknown) => {
    requireFileError(cause, `reading ${places.script}`)
    throw strangeViews(folder, places.script, 'a lake without it', cause)
  })
}
