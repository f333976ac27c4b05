import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { Answerer, type WorkerMessage, type AnswererCall } from '../../src/interfaces/server/query-worker.ts'

/** A process that does what a test says. */
class Actor {
  readonly told: AnswererCall<string>[] = []
  killed = false
  readonly say: (said: WorkerMessage<string>) => void
  readonly end: (how: string) => void

  constructor(say: (said: WorkerMessage<string>) => void, end: (how: string) => void) {
    this.say = say
    this.end = end
  }

  /** The questions that it was asked, in their order. */
  get asked(): readonly string[] {
    return this.told.flatMap((one) => ('question' in one ? [one.question] : []))
  }

  /** Those that nobody waits for. */
  get given(): readonly string[] {
    const gone = this.told.flatMap((one) => ('gone' in one ? [one.id] : []))
    return this.told.flatMap((one) => ('question' in one && gone.includes(one.id) ? [one.question] : []))
  }

  begin(...questions: readonly string[]): void {
    for (const question of questions) this.say({ id: this.#id(question), begun: true })
  }

  answer(...questions: readonly string[]): void {
    for (const question of questions) this.say({ id: this.#id(question), answer: `${question}!` })
  }

  refuse(question: string, subject: string): void {
    this.say({ id: this.#id(question), refused: { kind: 'stopped', complaints: [{ subject }] } })
  }

  #id(question: string): number {
    return this.told.find((one) => 'question' in one && one.question === question)?.id ?? -1
  }
}

/** An answerer over such processes, each of which opens at once, with a clock that a test goes on. */
function staged(open: (actor: Actor, n: number) => void = (actor) => actor.say({ ready: 'tools' })) {
  const actors: Actor[] = []
  const notes: string[] = []
  const waits: { readonly ms: number; readonly wake: () => void }[] = []
  const answerer = new Answerer<string, string>(
    { seconds: 7, told: '7s' },
    {
      start: (heard, ended) => {
        const actor = new Actor(heard, ended)
        actors.push(actor)
        setTimeout(() => open(actor, actors.length))
        return {
          send: (told) => void actor.told.push(told),
          kill: () => {
            actor.killed = true
            setTimeout(() => actor.end('SIGKILL'))
          },
        }
      },
      sleep: async (ms, signal) => {
        await new Promise<void>((wake) => {
          waits.push({ ms, wake })
          signal?.addEventListener('abort', () => wake())
        })
      },
      note: (words) => void notes.push(words),
    },
  )
  const never = new AbortController().signal
  const ask = async (question: string, gone = never): Promise<string> =>
    await answerer.ask(question, gone).catch((error: unknown) => (error instanceof Error ? error.message : 'x'))
  /** Lets everything happen that can, then gives the last process. */
  const now = async (): Promise<Actor> => {
    for (let n = 0; n < 20; n++) {
      await setImmediate()
      await new Promise((done) => setTimeout(done))
    }
    const actor = actors.at(-1)
    if (actor === undefined) throw new Error('no process')
    return actor
  }
  const pass = (ms: number): void => {
    for (const wait of waits.splice(0)) if (wait.ms === ms) wait.wake()
  }
  return { answerer, actors, notes, ask, now, pass }
}

const tooLong = 'the query took longer than 7s; query less data at once, or start it with a longer --timeout'

test('one worker process answers all questions, names itself, and answers in any order', async () => {
  const { answerer, actors, ask, now } = staged()
  expect(await answerer.ready()).toBe('tools')
  const asked = ['a', 'b', 'c'].map(async (question) => await ask(question))
  const process = await now()
  process.begin('a', 'b', 'c')
  process.answer('c', 'a', 'b')
  expect(await Promise.all(asked)).toEqual(['a!', 'b!', 'c!'])
  expect([actors.length, process.given]).toEqual([1, []])
})

describe('a question whose time is over', () => {
  test('a question out of time is cancelled, and its error names the time limit', async () => {
    const { actors, ask, now, pass } = staged()
    const late = ask('late')
    const process = await now()
    pass(7000)
    await now()
    expect(process.given).toEqual([])
    process.begin('late')
    pass(7000)
    await now()
    expect(process.given).toEqual(['late'])
    process.refuse('late', 'the query was cancelled')
    expect(await late).toBe(tooLong)
    pass(2000)
    await now()
    expect([actors.length, process.killed]).toEqual([1, false])
  })

  test('a question that ignores its end takes the process with it, and other questions go to the next process', async () => {
    const { actors, notes, ask, now, pass } = staged()
    const deaf = ask('deaf')
    const first = await now()
    first.begin('deaf')
    pass(7000)
    const slow = ask('slow')
    const waiting = ask('waiting')
    await now()
    first.begin('slow')
    pass(2000)
    const second = await now()
    expect(await deaf).toBe(tooLong)
    expect([first.killed, actors.length, second.asked]).toEqual([true, 2, ['slow', 'waiting']])
    // What the lost one still says is heard by nobody.
    first.answer('slow')
    second.answer('waiting', 'slow')
    expect([await slow, await waiting]).toEqual(['slow!', 'waiting!'])
    expect(notes).toEqual(['a cancelled query did not end by itself; another process goes on'])
  })

  test('the time limit starts again with each try, and after five lost processes the question is refused', async () => {
    const { actors, ask, now, pass } = staged()
    const unlucky = ask('unlucky')
    for (let n = 1; n <= 5; n++) {
      const deaf = ask(`deaf ${n}`)
      const process = await now()
      expect(process.asked).toContain('unlucky')
      process.begin(`deaf ${n}`)
      pass(7000)
      await now()
      process.begin('unlucky')
      pass(2000)
      expect(await deaf).toBe(tooLong)
    }
    expect(await unlucky).toBe("the query was begun 5 times, and each time another's ended the process; send it again")
    await now()
    expect(actors).toHaveLength(6)
  })
})

test('if a client leaves, its running question is ended and its waiting one delays no other', async () => {
  const { actors, ask, now, pass } = staged()
  const one = new AbortController()
  const two = new AbortController()
  const asked = [ask('at work', one.signal), ask('waiting', two.signal), ask('other')]
  const first = await now()
  first.begin('at work')
  two.abort()
  pass(2000)
  await now()
  expect([first.given, first.killed]).toEqual([['waiting'], false])
  first.refuse('waiting', 'the query was cancelled')
  one.abort()
  await now()
  pass(2000)
  const second = await now()
  expect([first.killed, second.asked]).toEqual([true, ['other']])
  second.answer('other')
  expect(await Promise.all(asked)).toEqual(['the query was cancelled', 'the query was cancelled', 'other!'])
  expect(await ask('too late', one.signal)).toBe('the query was cancelled')
  expect([actors.length, second.asked]).toEqual([2, ['other']])
})

test('who goes away just before his turn begins is waited for no longer than others', async () => {
  const { ask, now, pass } = staged()
  const gone = new AbortController()
  const asked = ask('deaf', gone.signal)
  const first = await now()
  gone.abort()
  first.begin('deaf')
  pass(2000)
  await now()
  expect([first.given, first.killed, await asked]).toEqual([['deaf'], true, 'the query was cancelled'])
})

describe('a process that ends by itself', () => {
  test('running questions are repeated one by one, and one that ends a second process alone is refused', async () => {
    const { actors, notes, ask, now } = staged()
    const [waiting, a, killer, c] = ['waiting', 'a', 'killer', 'c'].map(async (question) => await ask(question))
    const first = await now()
    first.begin('a', 'killer', 'c')
    first.end('SIGKILL')
    const second = await now()
    const newcomer = ask('newcomer')
    await now()
    expect(second.asked).toEqual(['a'])
    second.answer('a')
    await now()
    expect(second.asked).toEqual(['a', 'killer'])
    second.begin('killer')
    second.end('SIGABRT')
    const third = await now()
    expect(await killer).toMatch(/ended two processes, the second one alone: .*\(SIGABRT\); query less data at once/)
    expect(third.asked).toEqual(['c'])
    third.begin('c')
    third.answer('c')
    await now()
    expect(third.asked).toEqual(['c', 'waiting', 'newcomer'])
    third.answer('newcomer', 'waiting')
    expect(await Promise.all([a, c, waiting, newcomer])).toEqual(['a!', 'c!', 'waiting!', 'newcomer!'])
    expect([actors.length, notes.length]).toEqual([3, 2])
  })

  test('if no question was running yet, each is repeated alone', async () => {
    const { ask, now } = staged()
    const asked = [ask('a'), ask('b')]
    ;(await now()).end('SIGKILL')
    const second = await now()
    expect(second.asked).toEqual(['a'])
    second.end('SIGKILL')
    const third = await now()
    third.answer('b')
    expect(await Promise.all(asked)).toEqual([expect.stringContaining('the second one alone'), 'b!'])
  })

  test('a process out of memory is ended, and its question gets that reason', async () => {
    const { ask, now } = staged()
    const large = ask('large')
    for (let n = 0; n < 2; n++) {
      const process = await now()
      process.begin('large')
      process.say({ full: true })
      expect(process.killed).toBe(true)
    }
    expect(await large).toContain('the answers took more memory than they may')
  })

  test('a process whose engine gave up is replaced: the cause is refused once, other questions are answered', async () => {
    const { actors, ask, now } = staged()
    const asked = [ask('fatal'), ask('beside')]
    const process = await now()
    process.begin('fatal', 'beside')
    process.refuse('fatal', 'an internal error')
    process.say({ broken: true })
    expect(process.killed).toBe(true)
    ;(await now()).answer('beside')
    expect(await Promise.all(asked)).toEqual(['an internal error', 'beside!'])
    expect([actors.length, actors[1]?.asked]).toEqual([2, ['beside']])
  })

  test('an idle process that ends is replaced before the next question', async () => {
    const { answerer, actors, now } = staged()
    await answerer.ready()
    ;(await now()).end('SIGKILL')
    await now()
    expect(actors).toHaveLength(2)
  })
})

test('if a process does not open, the question gets its error and the next question tries again', async () => {
  const failed: WorkerMessage<string> = {
    failed: { kind: 'integrity', complaints: [{ subject: 'lake', got: 'damage' }] },
  }
  const { answerer, actors, notes, ask, now } = staged((actor, n) => {
    if (n === 2) actor.end('SIGSEGV')
    else actor.say(n === 1 ? failed : { ready: null })
  })
  await expect(answerer.ready()).rejects.toThrow('lake: damage')
  const asked = ask('a')
  expect((await now()).asked).toEqual(['a'])
  ;(await now()).answer('a')
  expect([await asked, actors.length, actors[0]?.killed, notes]).toEqual(['a!', 3, true, []])
})

test('if a later process does not open, its error goes to the operator and not to the client', async () => {
  const failed: WorkerMessage<string> = {
    failed: { kind: 'usage', complaints: [{ subject: 'lake /lakes/me/data', got: 'damage' }] },
  }
  const { notes, ask, now } = staged((actor, n) => actor.say(n === 1 ? { ready: null } : failed))
  const first = ask('a')
  const process = await now()
  process.end('SIGKILL')
  const told = await first
  expect(told).toMatch(/^the lake: expected views that can be opened, got none; /)
  expect(await ask('b')).toBe(told)
  expect(notes).toContain('lake /lakes/me/data: damage')
})

test('a stop ends the process, refuses waiting questions and starts no new process', async () => {
  const { answerer, actors, notes, ask, now } = staged()
  const asked = [ask('a'), ask('b')]
  const process = await now()
  process.begin('a')
  await answerer[Symbol.asyncDispose]()
  expect(await Promise.all([...asked, ask('c')])).toEqual(Array(3).fill('the query was cancelled'))
  expect([process.killed, actors.length, notes]).toEqual([true, 1, []])
})
