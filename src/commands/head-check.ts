import { resolve } from 'node:path'
import { LakeError, usage } from '../errors.ts'
import { adoptLog, checkHead, type HeadVerdict } from '../heads/check.ts'
import { keyFrom, readHead } from '../heads/head.ts'
import { Ledger } from '../ledger/ledger.ts'
import type { NoteKey } from '../merkle/note.ts'
import { readGiven } from './context.ts'
import type { Call } from './spec.ts'
import { lakeWorld } from './world.ts'

/** The variable that names the file of the key. */
export const keyVariable = 'PITLAKE_HEAD_KEY_FILE'

/** The option that names a key. */
export const keyOption = { '--key FILE': `the key that signs (default: what ${keyVariable} names)` } as const

/** The key of a call; undefined where none is named. */
export async function keyGiven(call: Call, given: string | undefined): Promise<NoteKey | undefined> {
  const named = given ?? call.env[keyVariable]
  return named === undefined || named === '' ? undefined : await keyFrom(named, (name) => resolve(call.cwd, name))
}

/** The key that signs; a public one, or none, is a mistake. */
export async function signingKey(call: Call, given: string | undefined): Promise<NoteKey> {
  const key = await keyGiven(call, given)
  if (key?.secret) return key
  throw usage('--key', {
    expected: 'a key that signs',
    got: key ? 'a public key' : 'none',
    next: 'run pitlake key new',
  })
}

/** The flags of `verify` that compare a lake with a head that was kept. */
export const headFlags = {
  '--head FILE': 'only compare the lake with a head that was kept elsewhere; asks nobody',
  '--key PUBLIC': 'the public key, or its file, whose signature the head must bear',
  '--adopt': 'with --head: begin a new log where the head is of another history',
} as const

/** Compares the lake with a head, and begins a new log where that is asked for. */
export async function headVerified(call: Call<typeof headFlags>) {
  const { options, settings, cwd } = call
  const { head: file = '', adopt } = options
  const kept = readHead(readGiven(call, file, 'a head as pitlake head prints it'), file)
  const key = await keyGiven({ ...call, cwd }, options.key)
  using ledger = adopt ? await Ledger.open(settings.data) : await Ledger.openToRead(settings.data)
  const found = await checkHead(ledger, kept, key)
  const begins = adopt && (found.verdict === 'fork' || found.verdict === 'behind')
  const log = begins ? await adoptLog(ledger, kept, lakeWorld(call, 'verify')) : null
  const verdict = log === null ? found.verdict : 'adopted'
  const reason = log === null ? found.reason : `${found.reason}; a new log begins: ${log.origin}, keep its head`
  const document: HeadVerdict = { ...found, verdict, reason }
  return { document, words: () => `${verdict}: ${reason}\n${keyWords(found)}`, error: headError(document) }
}

function keyWords({ signed }: HeadVerdict): string {
  return signed === null ? 'note: nobody looked at its signature; name the public key with --key\n' : ''
}

function headError({ verdict, reason }: HeadVerdict): LakeError | null {
  if (verdict === 'extends' || verdict === 'adopted') return null
  const next = 'docs/proof.md tells what to do; --adopt begins a new log, and says so'
  return new LakeError(verdict === 'behind' ? 'incomplete' : 'integrity', { subject: 'the lake', got: reason, next })
}
