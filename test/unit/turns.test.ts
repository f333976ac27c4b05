import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Turns } from '../../src/interfaces/server/turns.ts'

/** Three places, and the questions that clients sent, each at work until it is ended. */
class Stage {
  readonly #turns = new Turns(3)
  readonly #ends = new Map<string, () => void>()
  readonly failed: string[] = []

  /** Sends a question, which is named after its client: `a1` is of `a`. */
  send(name: string, gone = new AbortController().signal, program?: string): void {
    const work = async (): Promise<void> => await new Promise((end) => void this.#ends.set(name, end))
    this.#turns.take({ client: name.charAt(0), program, closed: gone }, work).catch(() => void this.failed.push(name))
  }

  /** The questions at work, in the order in which they began. */
  async atWork(): Promise<string> {
    await setImmediate()
    return [...this.#ends.keys()].join(' ')
  }

  end(name: string): void {
    this.#ends.get(name)?.()
    this.#ends.delete(name)
  }
}

test('a client with eight questions leaves a place to the first question of another', async () => {
  const stage = new Stage()
  for (let n = 1; n <= 8; n++) stage.send(`a${n}`)
  expect(await stage.atWork()).toBe('a1 a2')
  stage.send('b1')
  expect(await stage.atWork()).toBe('a1 a2 b1')
})

test('a free place goes to the client with the fewest places, and among equals by turns', async () => {
  const stage = new Stage()
  for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1', 'd1']) stage.send(name)
  expect(await stage.atWork()).toBe('a1 a2 b1')
  for (const [ended, begun] of [
    ['a1', 'c1'],
    ['b1', 'b2'],
    ['c1', 'd1'],
    ['a2', 'a3'],
  ] as const) {
    stage.end(ended)
    expect((await stage.atWork()).split(' ').at(-1)).toBe(begun)
  }
})

const never = new AbortController().signal

test('a program of a client does not wait for the queue of another one, and equals take turns', async () => {
  const stage = new Stage()
  for (let n = 1; n <= 5; n++) stage.send(`a${n}`, never, 'greedy')
  for (const name of ['a6', 'a7']) stage.send(name, never, 'modest')
  stage.send('a8')
  expect(await stage.atWork()).toBe('a1 a2')
  for (const [ended, begun] of [
    ['a1', 'a6'],
    ['a2', 'a3'],
    ['a6', 'a8'],
    ['a8', 'a7'],
    ['a3', 'a4'],
  ] as const) {
    stage.end(ended)
    expect((await stage.atWork()).split(' ').at(-1)).toBe(begun)
  }
})

test('however many names a client uses, it gets no place that it would not get without', async () => {
  const stage = new Stage()
  for (let n = 1; n <= 8; n++) stage.send(`a${n}`, never, `name ${n}`)
  stage.send('b1', never, 'name 1')
  expect(await stage.atWork()).toBe('a1 a2 b1')
  stage.end('a1')
  stage.send('c1', never, 'name 1')
  expect(await stage.atWork()).toBe('a2 b1 c1')
})

test('a program that goes away leaves the questions of others of its client in their order', async () => {
  const stage = new Stage()
  const gone = new AbortController()
  for (const name of ['a1', 'a2']) stage.send(name, never, 'x')
  stage.send('a3', gone.signal, 'y')
  stage.send('a4', never, 'z')
  gone.abort()
  await setImmediate()
  expect(stage.failed).toEqual(['a3'])
  stage.end('a1')
  expect(await stage.atWork()).toBe('a2 a4')
})

test('a question whose client goes away gives up its wait, and one that fails its place', async () => {
  const stage = new Stage()
  const gone = new AbortController()
  for (const name of ['a1', 'a2', 'a3']) stage.send(name, name === 'a3' ? gone.signal : undefined)
  gone.abort()
  stage.send('a4', AbortSignal.abort())
  await setImmediate()
  expect(stage.failed).toEqual(['a3', 'a4'])
  stage.end('a1')
  expect(await stage.atWork()).toBe('a2')

  const turns = new Turns(2)
  const asker = { client: 'a', closed: new AbortController().signal }
  await expect(turns.take(asker, async () => await Promise.reject(new Error('failed')))).rejects.toThrow('failed')
  expect(await turns.take(asker, async () => await Promise.resolve(7))).toBe(7)
})

test('a single freed place goes to a waiting caller', async () => {
  const turns = new Turns(1)
  const asker = { client: 'a', closed: new AbortController().signal }
  expect(await turns.take(asker, async () => await Promise.resolve(7))).toBe(7)
})
