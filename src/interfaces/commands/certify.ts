import { resolve } from 'node:path'
import { certify } from '../../trust/certificate/certify.ts'
import { certificatePage } from '../../trust/certificate/page.ts'
import { usage } from '../../base/errors.ts'
import { outFile, putOut } from '../../lake/store/output.ts'
import { bytes, several } from '../../base/figures.ts'
import { stampedPath, timeoutOption, withinTime } from '../cli/context.ts'
import { headGiven, keyGiven, keyOption } from './head-check.ts'
import { proveStamped } from './lookahead.ts'
import { answering } from '../cli/spec.ts'
import { lakeWorld, openedLake } from '../cli/world.ts'

export const certifyCommand = answering({
  args: { '<result>': 'a Parquet file that pitlake stamp wrote' },
  options: {
    '--out FILE': 'the certificate, JSON',
    ...keyOption,
    '--statistic SQL': 'add a statistic: a query with one row that reads the table result and nothing else',
    '--cutoffs N': 'number of runs without a part of the future, if the plan of the query proves nothing',
    '--since FILE': 'also prove that the log extends this earlier head',
    '--page FILE': 'also write an HTML page that explains it',
    ...timeoutOption,
  },
  details: `The file contains the query, its version, the verdict on look-ahead and the availability rules. It lists each data file
that the plan reads, with its SHA-256. With the signed head of the log it proves that the version had these files and no
others. docs/proof/verify-certificate.mjs and docs/proof/verify_certificate.py check it without pitlake. The file contains no
value of the data except the statistic.`,
  answer: async (call) => {
    await openedLake(call)
    const { options, settings, cwd } = call
    const { out, page, statistic, cutoffs, since } = options
    if (out === undefined) throw usage('--out', { expected: 'the file of the certificate', got: 'nothing' })
    for (const file of [out, page]) if (file !== undefined) outFile(resolve(cwd, file), settings.data).discard()
    const key = await keyGiven(call, options.key)
    if (!key?.secret)
      throw usage('--key', {
        expected: 'a key that signs',
        got: 'none',
        next: 'name your key with --key; if there has never been one, run pitlake keygen',
      })
    const { told: certificate, text } = await certify({
      root: settings.data,
      result: stampedPath(call, call.args[0] ?? ''),
      key,
      statistic,
      since: since === undefined ? [] : [headGiven(call, since, '--since')],
      deps: lakeWorld(call, 'certify'),
      ...(cutoffs !== undefined && {
        trials: async (note) => await proveStamped(settings.data, note, cutoffs, withinTime(call)),
      }),
    })
    await putOut(resolve(cwd, out), text, settings.data, '--out')
    if (page !== undefined) await putOut(resolve(cwd, page), certificatePage(certificate), settings.data, '--page')
    const { verdict, live, knowledge, head } = certificate
    const files = Object.values(live.lists).reduce((sum, list) => sum + list.length, 0)
    const { version } = knowledge
    const document = { out, bytes: text.length, version, verdict: verdict.verdict, files, head }
    const words = () =>
      `${out}: version ${version}, ${verdict.verdict}, ${several(files, 'file')}, ${bytes(text.length)}\n`
    return { document, words }
  },
})
