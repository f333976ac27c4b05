import { statfs } from 'node:fs/promises'
import type { Catalogue } from '../catalog/catalogue.ts'
import { damageVerdict } from '../upkeep/damage.ts'
import { type Diagnosis, type DoctorDeps, examine } from '../upkeep/doctor.ts'
import { isLoopback, type Settings } from '../config/settings.ts'
import { buildViews } from '../views/build.ts'
import { readContext } from './context.ts'
import { bytes } from '../report/page/words.ts'
import { type CommandSpec, type Deps, flagOption } from './spec.ts'
import { lakeWorld } from './world.ts'
import { number } from './print.ts'

/** `doctor`: what is wrong with a lake, and the remedy. */
export const doctorCommand: CommandSpec = {
  name: 'doctor',
  ends: [4, 6, 7],
  summary: 'Find what is wrong with a lake and say the remedy; mends what it is told to.',
  options: [
    { flags: '--rebuild-ledger', about: 'make the ledger anew from the journal' },
    { flags: '--repair', about: 'mend whatever can be mended without losing anything' },
    {
      flags: '--adopt',
      about: 'make the journal anew from the data files of a lake that lost it; what does not fit is moved',
    },
    { flags: '--forget-lost', about: 'go on without damaged files: the loss is written down, fetch asks again' },
    { flags: '--quick', about: 'look at names and sizes only, read no checksums' },
  ],
  details:
    'Without a flag it only looks. Exit code 4: something is lost or unreadable; notices alone (orphans, stale\nlocks, little room) leave it at 0. Nothing is ever lost unless --forget-lost says so.',
  answer: async (input, deps) => {
    const { settings, catalogue } = readContext(input, deps)
    const diagnosis = await examine(
      {
        data: settings.data,
        thorough: !flagOption(input, 'quick'),
        rebuildLedger: flagOption(input, 'rebuildLedger'),
        repair: flagOption(input, 'repair'),
        forgetLost: flagOption(input, 'forgetLost'),
        adopt: flagOption(input, 'adopt') ? { catalogue, synthetic: madeUp(settings) } : null,
      },
      worldOf(deps, catalogue),
    )
    const damages = diagnosis.findings.filter(({ severity }) => severity === 'damage')
    const document = { ok: damages.length === 0, ...diagnosis }
    return { document, words: () => inWords(diagnosis), error: damageVerdict(damages) }
  },
}

/** Whether the configured provider makes its data up: a sandbox listens on this machine. Null where none is configured. */
function madeUp({ metrics, registry }: Settings): boolean | null {
  const own = [metrics.url, registry.url].flatMap((url) => (url === null ? [] : [isLoopback(url)]))
  const [first = null] = own
  return own.every((loopback) => loopback === first) ? first : null
}

function worldOf(deps: Deps, catalogue: Catalogue): DoctorDeps {
  const committing = lakeWorld(deps, 'doctor')
  return {
    ...committing,
    resources: catalogue.resources,
    views: async (ledger) => await buildViews(ledger, { catalogue, deps: committing, force: true }),
    space: async (path) => {
      const { bavail, blocks, bsize } = await statfs(path)
      return { free: bavail * bsize, total: blocks * bsize }
    },
  }
}

function inWords({ version, checked, findings, mended, forgotten }: Diagnosis): string {
  const lines = mended.map((text) => `mended    ${text}`)
  if (forgotten && forgotten.files.length > 0) {
    const { files, points, series } = forgotten
    lines.push(
      `lost      ${number(points)} points of ${series.length} series in ${files.length} files; fetch asks for them again`,
    )
    for (const path of files) lines.push(`          ${path}`)
  }
  for (const { severity, path, found, remedy } of findings)
    lines.push(`${severity.padEnd(9)} ${path}: ${found}`, `          remedy: ${remedy}`)
  const how = checked.thorough ? 'every byte read' : 'sizes only'
  lines.push(`checked   version ${version}, ${checked.files} files, ${bytes(checked.bytes)}, ${how}`)
  if (findings.length === 0) lines.push('healthy   nothing is wrong')
  return `${lines.join('\n')}\n`
}
