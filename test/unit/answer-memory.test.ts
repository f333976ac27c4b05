import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { AnswerMemory } from '../../src/lake/store/answer-memory.ts'
import { storedArrivals, type StoredArrivals } from '../../src/trust/availability-audit.ts'
import { withRig } from '../helpers/fetching.ts'
import { inFolder } from '../helpers/folders.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const noon = Date.UTC(2024, 5, 5, 12) / 1000
const day = 86_400
const selection = { assets: ['BTC'], paths: ['supply/current_pit'], since: noon - 30 * day }

async function arrivalsIn(root: string): Promise<StoredArrivals[]> {
  using ledger = await Ledger.openToRead(root)
  return await storedArrivals(ledger, catalogue, () => true)
}

test('a stored answer is found again for the same statement, and for no other', async () =>
  inFolder(async (root) => {
    const memory = await AnswerMemory.open(root, 'answers.json')
    memory.store('SELECT 1', [{ one: 1 }])
    await memory.save()
    const reopened = await AnswerMemory.open(root, 'answers.json')
    expect(reopened.find('SELECT 1')).toEqual([{ one: 1 }])
    expect(reopened.find('SELECT 2')).toBeUndefined()
  }))

test('a memory keeps the answers that were used last', async () =>
  inFolder(async (root) => {
    const memory = await AnswerMemory.open(root, 'answers.json')
    memory.store('first', [])
    for (let n = 0; n < 99; n++) memory.store(`statement ${n}`, [])
    memory.find('first')
    memory.store('last', [])
    await memory.save()
    const reopened = await AnswerMemory.open(root, 'answers.json')
    expect(['first', 'statement 0', 'statement 1', 'last'].map((one) => reopened.find(one) !== undefined)).toEqual([
      true,
      false,
      true,
      true,
    ])
  }))

test('the audit of an unchanged lake comes from memory, unless a file of it is lost', async () =>
  withRig(noon, async (rig) => {
    await rig.fetch(selection)
    await arrivalsIn(rig.root)
    const file = join(rig.root, 'arrivals.json')
    writeFileSync(file, readFileSync(file, 'utf8').replace('"points":29', '"points":7'))
    const [remembered] = await arrivalsIn(rig.root)
    expect(remembered?.arrivals.points).toBe(7)
    rmSync(join(rig.root, 'points'), { recursive: true })
    await expect(arrivalsIn(rig.root)).rejects.toThrow('No files found')
  }))

test('a new point is audited, whatever is remembered of the points before it', async () =>
  withRig(noon, async (rig) => {
    await rig.fetch(selection)
    await arrivalsIn(rig.root)
    rig.clock.now += day
    await rig.fetch(selection)
    const [remembering] = await arrivalsIn(rig.root)
    rmSync(join(rig.root, 'arrivals.json'))
    const [computed] = await arrivalsIn(rig.root)
    expect(remembering).toEqual(computed)
    expect(computed?.arrivals.points).toBe(30)
  }))

test('a damaged memory is passed over: the audit reads the points', async () =>
  withRig(noon, async (rig) => {
    await rig.fetch(selection)
    const computed = await arrivalsIn(rig.root)
    const file = join(rig.root, 'arrivals.json')
    const text = readFileSync(file, 'utf8')
    for (const damaged of [text.slice(0, 100), text.replace('"points":', '"pints":'), '[]']) {
      writeFileSync(file, damaged)
      expect(await arrivalsIn(rig.root)).toEqual(computed)
    }
  }))
