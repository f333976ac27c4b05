import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type Page as Tab } from 'playwright-core'
import { addressOf } from './serve.ts'
import { judged, type Measured, median, scaled, told } from './measured.ts'
import { root } from './provider.ts'
import { buildLake } from './scale-lake.ts'

/** Points of the lake, of which the chart shows the largest series: `PITLAKE_PAGE_LAKE` names one that is there. */
const points = scaled(5_000_000)
const rounds = { paint: 5, step: 40 }
/** Milliseconds. */
const bounds = { paint: 1000, step: 150 }

/**
 * The page of `serve` in Chromium: until its chart is drawn, and until a step of the slider is. A busy machine makes each
 * later without making it dearer, so the bounds hold for the processor: of server, answers and page together.
 */
export async function benchPage(): Promise<Measured[]> {
  const executablePath = [process.env['PITLAKE_CHROMIUM'] ?? '', '/usr/bin/chromium'].find((path) => existsSync(path))
  if (executablePath === undefined) return [told('no chromium here: apt-get install chromium')]
  const folder = mkdtempSync(join(tmpdir(), 'pitlake-page-'))
  const lake = process.env['PITLAKE_PAGE_LAKE'] ?? join(folder, 'lake')
  if (!existsSync(lake)) await buildLake(lake, points, 2)
  const server = spawn(process.execPath, ['src/main.ts', 'serve', '--data', lake, '--listen', '127.0.0.1:0'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const context = await chromium.launchPersistentContext(join(folder, 'profile'), {
    executablePath,
    headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
    viewport: { width: 1280, height: 900 },
  })
  try {
    const url = await addressOf(server)
    const cost = costOf(server.pid ?? 0)
    const tab = await context.newPage()
    const address = `${url}/#metric=indicators/sopr_adjusted_pit&interval=10m&assets=A00,A01,A02`
    const paints = await measured(rounds.paint, tab, cost, async () => {
      await tab.goto('about:blank')
      await tab.goto(address)
      await tab.waitForSelector('.known path')
    })
    await tab.waitForSelector('body[data-drawn]:not([aria-busy])')
    const steps = await measured(rounds.step, tab, cost, async (n) => {
      await tab.evaluate(stepTo, 20 + n * 23)
      await tab.waitForSelector('body[data-drawn]:not([aria-busy])')
    })
    const [shown] = (await tab.locator('#newest .quiet').textContent())?.match(/[\d,]+ until/) ?? ['']
    return [
      judged(lineOf(`first paint of ${shown.replace(' until', ' points')}`, paints), paints.cpu, bounds.paint, ' ms'),
      judged(lineOf('a step of the slider', steps), steps.cpu, bounds.step, ' ms'),
    ]
  } finally {
    await context.close()
    server.kill('SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  }
}

const lineOf = (what: string, { wall, cpu }: Took): string =>
  `${what}: ${wall.toFixed(0)} ms, of the processor ${cpu.toFixed(0)} ms`

interface Took {
  readonly wall: number
  readonly cpu: number
}

/** Moves the slider, as a pointer would. */
const stepTo = (place: number): void => {
  const slider = document.querySelector<HTMLInputElement>('#slider')
  if (slider === null) throw new Error('no slider')
  delete document.body.dataset['drawn']
  slider.value = String(place)
  slider.dispatchEvent(new Event('input', { bubbles: true }))
}

/** What each of so many rounds takes, in the middle; the first one is not counted. */
async function measured(
  count: number,
  tab: Tab,
  cost: () => number,
  work: (n: number) => Promise<void>,
): Promise<Took> {
  const session = await tab.context().newCDPSession(tab)
  await session.send('Performance.enable')
  const ofPage = async (): Promise<number> => {
    const { metrics } = await session.send('Performance.getMetrics')
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1000
  }
  const [walls, costs]: [number[], number[]] = [[], []]
  for (let n = 0; n <= count; n++) {
    const [begun, before, page] = [performance.now(), cost(), await ofPage()]
    await work(n)
    walls.push(performance.now() - begun)
    // A new document begins to count anew.
    const drawn = await ofPage()
    costs.push(cost() - before + (drawn > page ? drawn - page : drawn))
  }
  return { wall: median(walls.slice(1)), cpu: median(costs.slice(1)) }
}

/** Milliseconds of the processor that a process and its children have taken. */
function costOf(pid: number): () => number {
  const own = (one: string): number => {
    const fields = readFileSync(`/proc/${one}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) * 10
  }
  return () => {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
    return [String(pid), ...children].filter((one) => one !== '').reduce((sum, one) => sum + own(one), 0)
  }
}
