import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { pitlake } from '../helpers/command.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { revisedMetrics, revisedPaths } from '../helpers/lakes/revised-metrics.ts'
import { listening } from '../helpers/listening.ts'

/* Compressed CSV files at every interface that reads a table of a user. */

const { home, root } = lakeOfFile(revisedMetrics)
const { rate } = revisedPaths

const compressors = { gz: gzipSync, zst: zstdCompressSync }
const namesAndBytes = (text: string) =>
  Object.entries(compressors).flatMap(([ending, compressed]) =>
    [`t.csv.${ending}`, `T.CSV.${ending.toUpperCase()}`].map((name) => [name, compressed(text)] as const),
  )

const points = `asset,t,${rate}\nBTC,2024-01-01,1.234567\n`
const decisions = 'asset,ts\nBTC,2024-01-20\n'

async function output(...argv: readonly string[]): Promise<string> {
  const { code, message, out } = await pitlake(home, argv)
  expect([code, message]).toEqual([0, ''])
  return out
}

/** Writes a file in the folder of the test, and returns its path. */
function put(name: string, bytes: Buffer | string): string {
  writeFileSync(join(home, name), bytes)
  return join(home, name)
}

const whenArgv = (file: string): string[] => ['when', file, '--data', root, '--json']
const panelArgv = (file: string): string[] => [
  'panel',
  '--decisions',
  file,
  '--metrics',
  rate,
  '--data',
  root,
  '--out',
  'panel.csv',
]

test('when answers a compressed file like the plain one, whatever the case of its name', async () => {
  const plain = await output(...whenArgv(put('plain.csv', points)))
  for (const [name, bytes] of namesAndBytes(points))
    expect(await output(...whenArgv(put(name, bytes))), name).toBe(plain)
})

test('panel reads decisions from a compressed file, whatever the case of its name', async () => {
  const panel = async (name: string, bytes: Buffer | string): Promise<string> => {
    await output(...panelArgv(put(name, bytes)))
    return readFileSync(join(home, 'panel.csv'), 'utf8')
  }
  const plain = await panel('plain.csv', decisions)
  expect(plain).toContain('BTC,2024-01-20')
  for (const [name, bytes] of namesAndBytes(decisions)) expect(await panel(name, bytes), name).toBe(plain)
})

test('when and panel refuse a compressed file that is cut off', async () => {
  const lines = Array.from({ length: 5000 }, (_, n) => `${n}`.repeat(3)).join('\n')
  for (const [text, argv] of [
    [points, whenArgv],
    [decisions, panelArgv],
  ] as const) {
    for (const [name, bytes] of namesAndBytes(`${text}${lines.replaceAll(/^/gm, 'BTC,2024-01-01,')}\n`)) {
      const { code, out, message } = await pitlake(home, argv(put(name, bytes.subarray(0, bytes.length - 9))))
      expect([code, out, message], name).toEqual([2, '', expect.stringContaining(name)])
    }
  }
})

test('POST /when takes what the command line takes, and refuses a file that is cut off', async () => {
  const plain = JSON.parse(await output(...whenArgv(put('plain.csv', points)))) as unknown
  const parquet = join(home, 't.parquet')
  await output(
    'sql',
    `SELECT * FROM (VALUES ('BTC', DATE '2024-01-01', 1.234567::DOUBLE)) AS own(asset, t, "${rate}")`,
    '--data',
    root,
    '--out',
    parquet,
  )
  const door = await listening(root, ['serve'])
  const send = async (bytes: Buffer): Promise<Response> =>
    await fetch(`${door.url}/when`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ table: bytes.toString('base64') }),
    })
  try {
    for (const [name, bytes] of namesAndBytes(points)) {
      expect(await (await send(bytes)).json(), name).toEqual(plain)
      const cut = await send(bytes.subarray(0, bytes.length - 5))
      expect([cut.status, await cut.text()], name).toEqual([
        400,
        expect.stringMatching(/^table: expected a CSV or Par/),
      ])
    }
    expect(await (await send(readFileSync(parquet))).json()).toEqual(
      JSON.parse(await output(...whenArgv(parquet))) as unknown,
    )
  } finally {
    await door.stop()
  }
})
