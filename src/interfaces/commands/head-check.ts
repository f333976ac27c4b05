import { resolve } from 'node:path'
import { LakeError, usage } from '../../base/errors.ts'
import { several } from '../../base/figures.ts'
import { type CopyComparison, compareCopy } from '../../trust/heads/against.ts'
import { adoptLog, checkHead, type HeadCheck } from '../../trust/heads/check.ts'
import { type KeptHead, keptHead, keyFrom } from '../../trust/heads/head.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import type { NoteKey } from '../../base/merkle/note.ts'
import { readGiven } from '../cli/context.ts'
import type { Call } from '../cli/spec.ts'
import { lakeWorld } from '../cli/world.ts'

/** The variable that names the file of the key. */
export const keyVariable = 'PITLAKE_HEAD_KEY_FILE'

/** The option that names a key. */
export const keyOption = { '--key FILE': `the key that signs (default: what ${keyVariable} names)` } as const

/** Reads the key of a call; undefined if none is named. */
export async function keyGiven({ env, cwd }: Call, given = env[keyVariable]): Promise<NoteKey | undefined> {
  return given === undefined || given === '' ? undefined : await keyFrom(given, resolve(cwd, given))
}

/** Reads a head from a file. */
export function headGiven(call: Call, file: string, flag: string): KeptHead {
  const storedHead = keptHead(readGiven(call, file, 'a head as pitlake head prints it', flag))
  if (storedHead !== undefined) return storedHead
  throw usage(flag, { expected: 'a head as pitlake head prints it', got: file })
}

/** Flags of `verify` that compare a lake with a head that was kept. */
export const headFlags = {
  '--head FILE': 'only compare the lake with a head that you kept elsewhere; contact no provider',
  '--key PUBLIC': 'the public key, or its file, that must have signed the head',
  '--against COPY':
    'with --head: also compare points, registry and listing of assets with this copy of an earlier version of the lake',
  '--adopt': 'with --head: begin a new log if the head belongs to a different history',
} as const

/** Compares the lake with a head, and begins a new log on request. */
export async function headVerified(call: Call<typeof headFlags>) {
  const { head: file = '', against, adopt, key } = call.options
  const earlierHead = headGiven(call, file, '--head')
  using ledger = await (adopt ? Ledger.open : Ledger.openToRead)(call.settings.data)
  const checked = await checkHead(ledger, earlierHead, await keyGiven(call, key))
  const copy =
    checked.verdict === 'extends' && against !== undefined
      ? await compareCopy(ledger, resolve(call.cwd, against))
      : null
  const begins = adopt && (checked.verdict === 'fork' || checked.verdict === 'behind')
  const log = begins ? await adoptLog(ledger, earlierHead, lakeWorld(call, 'verify')) : null
  const anew = log && { verdict: 'adopted', reason: `${checked.reason}; a new log begins: ${log.origin}` }
  const document: HeadCheck & { readonly copy: CopyComparison | null } = {
    ...checked,
    ...(copy && verdictOfCopy(copy)),
    ...anew,
    copy,
  }
  const { verdict, reason, signed } = document
  const note = signed === null ? 'note: its signature was not checked; name the public key with --key\n' : ''
  const next = 'docs/explanation/proof.md describes what to do; --adopt begins a new log and reports that'
  const kind = verdict === 'behind' ? 'incomplete' : 'integrity'
  const good = verdict === 'extends' || verdict === 'adopted'
  const error = good ? null : new LakeError(kind, { subject: 'the lake', got: reason, next })
  return { document, words: () => `${verdict}: ${reason}\n${note}`, error }
}

/** Builds the verdict on a lake that extends the head, after its contents were compared with a copy. */
function verdictOfCopy({ version, files, dates, compared }: CopyComparison): Pick<HeadCheck, 'verdict' | 'reason'> {
  const other = compared.find(({ missing, added }) => missing + added > 0)
  if (other !== undefined) {
    const { table, metric, missing, added } = other
    const what =
      `${metric ?? table}: ${several(missing, 'row')} of version ${version} missing, ` +
      `${several(added, 'row')} added`
    return { verdict: 'differs', reason: `the contents are not those of the copy; ${what}` }
  }
  const rows = compared.reduce((sum, table) => sum + table.rows, 0)
  const left = dates ? '' : '; dates of knowledge were not compared, because the lake was redated since'
  const same =
    `${several(files, 'file')} and ${several(rows, 'row')} of replaced files are as in the copy of version ` + version
  return { verdict: 'extends', reason: `the lake extends the head; ${same}${left}` }
}
