import { resolve } from 'node:path'
import { certify } from '../../trust/certificate/certify.ts'
import { certificatePage } from '../../trust/certificate/page.ts'
import { usage } from '../../base/errors.ts'
import { kinds } from '../../base/option-kinds.ts'
import { outFile, putOut } from '../../lake/store/output.ts'
import { bytes } from '../../base/figures.ts'
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
    '--figure SQL': 'also tell a figure: a query of one row over the table result',
    '--cutoffs N': 'run the query again so many times without a part of the future, where its plan proves nothing',
    '--since FILE': 'also lead from this head, which was kept elsewhere',
    '--disclose LIST': ['what of the data to tell beside digests: months', kinds.list(['months'])],
    '--page FILE': 'also write a page that tells it to people',
    ...timeoutOption,
  },
  details: `One file that says what was asked, of which version, with which verdict on its look-ahead, and leads with proofs from every
series, table and rule that the plan reads to the signed head of the log. docs/proof/verify-certificate.mjs and
docs/proof/verify_certificate.py check it; neither needs this program. No value of the data stands in it but the figure.`,
  answer: async (call) => {
    await openedLake(call)
    const { options, settings, cwd } = call
    const { out, page, figure, cutoffs, since, disclose = [] } = options
    if (out === undefined) throw usage('--out', { expected: 'the file of the certificate', got: 'nothing' })
    for (const file of [out, page]) if (file !== undefined) outFile(resolve(cwd, file), settings.data).discard()
    const key = await keyGiven(call, options.key)
    if (!key?.secret)
      throw usage('--key', {
        expected: 'a key that signs',
        got: 'none',
        next: 'name your key with --key; if there has never been one, run pitlake keygen',
      })
    const { told, text } = await certify({
      root: settings.data,
      result: stampedPath(call, call.args[0] ?? ''),
      key,
      figure,
      months: disclose.includes('months'),
      since: since === undefined ? [] : [headGiven(call, since, '--since')],
      deps: lakeWorld(call, 'certify'),
      ...(cutoffs !== undefined && {
        trials: async (note) => await proveStamped(settings.data, note, cutoffs, withinTime(call)),
      }),
    })
    await putOut(resolve(cwd, out), text, settings.data, '--out')
    if (page !== undefined) await putOut(resolve(cwd, page), certificatePage(told), settings.data, '--page')
    const { verdict, state, knowledge, head } = told
    const series = state.members.flatMap(({ name, members }) => (name.startsWith('series ') ? members : [])).length
    const { version } = knowledge
    const document = { out, bytes: text.length, version, verdict: verdict.verdict, series, head }
    const words = () => `${out}: version ${version}, ${verdict.verdict}, ${series} series, ${bytes(text.length)}\n`
    return { document, words }
  },
})
