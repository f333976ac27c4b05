import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeFolder } from './folders.ts'

const program = fileURLToPath(new URL('watched.ts', import.meta.url))

/** What a process holds in memory, megabytes. */
export interface Holds {
  readonly at: number
  readonly resident: number
  /** Of them its own values. */
  readonly used: number
}

/** A command line at work in a process of its own. */
export interface Life {
  readonly begun: number
  readonly child: ChildProcess
  readonly holds: readonly Holds[]
  readonly said: () => string
  /** Its exit code; null where it was killed, undefined while it lives. */
  code: number | null | undefined
  stopped: boolean
  /** Whether it has taken a SIGTERM. */
  told: boolean
  readonly sleeping: Map<number, number>
}

/**
 * Processes by one clock, which goes on only while all of them wait; each of them sees it, and it is written by nobody
 * else.
 */
export class Lives {
  readonly #home = makeFolder('lives')
  readonly #file = join(this.#home, 'clock')
  readonly #clock = openSync(this.#file, 'w')
  readonly #all: Life[] = []
  readonly #heard = new EventEmitter()
  readonly #shown: { now: number }

  /** The clock is shown in `shown`, too. */
  constructor(shown: { now: number }) {
    this.#shown = shown
    this.now = shown.now
  }

  get now(): number {
    return this.#shown.now
  }

  set now(to: number) {
    this.#shown.now = to
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(to)
    writeSync(this.#clock, bytes, 0, 8, 0)
  }

  /** Begins one. */
  begin(
    cwd: string,
    env: Readonly<Record<string, string>>,
    argv: readonly string[],
    node: readonly string[] = [],
  ): Life {
    const child = spawn(process.execPath, [...node, program, this.#file, ...argv], {
      cwd,
      env: { PATH: process.env['PATH'], TZ: process.env['TZ'], ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    let text = ''
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (part: Buffer) => (text += part.toString()))
    const holds: Holds[] = []
    const life: Life = {
      begun: this.now,
      child,
      holds,
      said: () => text,
      code: undefined,
      stopped: false,
      told: false,
      sleeping: new Map(),
    }
    child.on(
      'message',
      (message: { asleep?: number; until?: number; awake?: number; told?: true } & Partial<Holds>) => {
        const { asleep, until = 0, awake, told = false, resident, used = 0 } = message
        life.told ||= told
        if (asleep !== undefined) life.sleeping.set(asleep, until)
        if (awake !== undefined) life.sleeping.delete(awake)
        if (resident !== undefined) holds.push({ at: this.now, resident, used })
        this.#heard.emit('news')
      },
    )
    child.on('close', (code) => {
      life.code = code
      this.#heard.emit('news')
    })
    this.#all.push(life)
    return life
  }

  /** When nobody is at work: each waits, is stopped or has ended. */
  async quiet(): Promise<void> {
    const busy = (): boolean => this.#all.some((life) => this.#goes(life) && life.sleeping.size === 0)
    while (busy()) await once(this.#heard, 'news')
  }

  /** Moves the clock to the end of the first wait, an instant at the latest, and wakes whose wait is over. */
  pass(latest: number): void {
    const ends = this.#all.filter((life) => this.#goes(life)).flatMap(({ sleeping }) => [...sleeping.values()])
    this.now = Math.max(this.now, Math.min(latest, ...ends))
    for (const life of this.#all.filter((one) => this.#goes(one)))
      for (const [id, end] of life.sleeping)
        if (end <= this.now) {
          life.sleeping.delete(id)
          life.child.send(id)
        }
  }

  /** A machine that sleeps until it is woken; the clock goes on. */
  stop(life: Life): void {
    life.stopped = true
    life.child.kill('SIGSTOP')
    this.#heard.emit('news')
  }

  wake(life: Life): void {
    life.stopped = false
    life.child.kill('SIGCONT')
  }

  /** Sends SIGTERM and waits until it is taken: no time passes before that, however slow the machine is. */
  async interrupt(life: Life): Promise<void> {
    life.child.kill('SIGTERM')
    while (!life.told && life.code === undefined) await once(this.#heard, 'news')
  }

  /** Waits for the end of one; the others, and the clock, stand still. */
  async ended(life: Life): Promise<number | null> {
    while (life.code === undefined) await once(this.#heard, 'news')
    return life.code
  }

  #goes({ code, stopped }: Life): boolean {
    return code === undefined && !stopped
  }

  [Symbol.dispose](): void {
    for (const { child } of this.#all) child.kill('SIGKILL')
    closeSync(this.#clock)
    rmSync(this.#home, { recursive: true, force: true })
  }
}
