import { join } from 'node:path'
import { DuckDBAppender, DuckDBConnection, DuckDBPreparedStatement, DuckDBResult } from '@duckdb/node-api'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { Engine, quote, quoteList } from '../../src/lake/store/engine.ts'
import { scratch } from '../helpers/scratch.ts'

let engine: Engine
const folder = scratch('engine')
beforeAll(async () => {
  engine = await Engine.open()
})
afterAll(async () => {
  engine.close()
})

test('values come back without loss', async () => {
  const [row] =
    await engine.rows(`SELECT 9007199254740993::BIGINT AS big, 7 AS small, 0.1::DOUBLE AS x, NULL AS nothing,
    make_timestamptz(1709251200000001) AS at, make_timestamp(-1) AS zoneless, DATE '2024-02-29' AS d,
    'infinity'::TIMESTAMPTZ AS open, [1, NULL] AS list, {a: 'x', b: 18446744073709551615::UBIGINT} AS s,
    map {'k': 1} AS m, 1.50::DECIMAL(9, 2) AS dec, 'ab'::BLOB AS bytes`)
  expect(row).toEqual({
    big: 9007199254740993n,
    small: 7,
    x: 0.1,
    nothing: null,
    at: '2024-03-01T00:00:00.000001Z',
    zoneless: '1969-12-31T23:59:59.999999',
    d: '2024-02-29',
    open: 'infinity',
    list: [1, null],
    s: { a: 'x', b: 18446744073709551615n },
    m: [{ key: 'k', value: 1 }],
    dec: '1.50',
    bytes: new Uint8Array([97, 98]),
  })
})

test('parameters by position and by name', async () => {
  expect(await engine.rows('SELECT $1 AS a, $2 AS b', ['x', 2n])).toEqual([{ a: 'x', b: 2n }])
  expect(await engine.rows('SELECT $a AS a', { a: "it's" })).toEqual([{ a: "it's" }])
})

test('the zone is UTC and no extension comes by itself, in every session', async () => {
  const session = await engine.session()
  const settings = await session.rows(`SELECT current_setting('TimeZone') AS zone,
    current_setting('autoinstall_known_extensions') AS install, current_setting('autoload_known_extensions') AS load`)
  expect(settings).toEqual([{ zone: 'UTC', install: false, load: false }])
  await session.run('CREATE TEMP TABLE mine AS SELECT 1 AS x')
  await expect(engine.rows('FROM mine')).rejects.toThrow('does not exist')
  session.close()
  expect(await engine.rows('SELECT 1 AS still')).toEqual([{ still: 1 }])
})

test('a stream gives all rows in order', async () => {
  const { names, types, chunks } = await engine.stream('SELECT i AS n FROM range(5000) r(i)')
  expect([names, types]).toEqual([['n'], ['BIGINT']])
  const seen: unknown[] = []
  for await (const chunk of chunks) seen.push(...(chunk.columns[0] ?? []))
  expect(seen).toEqual(Array.from({ length: 5000 }, (_, i) => BigInt(i)))
})

test('an interrupt of an engine stops statements of its sessions until they are closed', async () => {
  using engine = await Engine.open()
  const session = await engine.session()
  const running = session.rows('SELECT count(*) FROM range(1000000000000) a, range(1000000) b')
  const timer = setInterval(() => engine.interrupt(), 20)
  await expect(running).rejects.toThrow(/interrupt/i)
  clearInterval(timer)
  session.close()
  engine.interrupt()
  expect(await engine.rows('SELECT 1 AS one')).toEqual([{ one: 1 }])
})

test('a running statement can be interrupted', async () => {
  const session = await engine.session()
  const running = session.rows('SELECT count(*) FROM range(100000000000) a')
  // Again and again: what is not running yet is not interrupted.
  const timer = setInterval(() => session.interrupt(), 20)
  await expect(running).rejects.toThrow(/interrupt/i)
  clearInterval(timer)
  session.close()
})

test('a database opened for reading cannot be written', async () => {
  const file = join(folder, "it's.duckdb")
  const writer = await Engine.open(file, { threads: 1, memoryLimit: '200MB', tempDirectory: folder })
  expect(await writer.run('CREATE TABLE x AS SELECT 1 AS a; INSERT INTO x VALUES (1)')).toBe(1)
  writer.close()
  using reader = await Engine.open(file, { readOnly: true })
  expect(await reader.rows('FROM x')).toEqual([{ a: 1 }, { a: 1 }])
  await expect(reader.run('INSERT INTO x VALUES (2)')).rejects.toThrow('read-only')
})

test('ask runs exactly one SELECT, with its parameters, and writes to no database', async () => {
  using engine = await Engine.open()
  await engine.run('CREATE SEQUENCE counted')
  expect(await engine.ask("SELECT $1 || '; SELECT 2' AS a", ["it's"])).toEqual([{ a: "it's; SELECT 2" }])
  for (const sql of ['SELECT 1; SELECT 2', 'SELECT 1; CREATE TABLE made (a INTEGER)'])
    await expect(engine.ask(sql), sql).rejects.toThrow(/got 2 statements/)
  for (const sql of ['CREATE TABLE made (a INTEGER)', 'SET VARIABLE as_of = NULL', "COPY (SELECT 1) TO '/dev/null'"])
    await expect(engine.ask(sql), sql).rejects.toThrow(/expected one SELECT/)
  await expect(engine.ask("SELECT nextval('counted')")).rejects.toThrow(/read-only/)
  await engine.run('BEGIN TRANSACTION; CREATE TEMP TABLE mine AS SELECT 3 AS a')
  expect(await engine.ask('FROM mine')).toEqual([{ a: 3 }])
  await engine.run('COMMIT')
})

test('texts are quoted as SQL literals', async () => {
  expect(await engine.rows(`SELECT ${quote("a'b")} AS a, ${quoteList(["'", ''])} AS l`)).toEqual([
    { a: "a'b", l: ["'", ''] },
  ])
})

describe('a stream that fails on its way', () => {
  const late = (n: number): string =>
    `SELECT CAST(CASE WHEN i = ${n} THEN 'x' ELSE '5' END AS INTEGER) AS v FROM range(1000000) AS r(i)`

  test.each([999_999, 500_000])('is an error, not an end: row %i', async (n) => {
    using engine = await Engine.open(':memory:', { threads: 1 })
    const read = async (sql: string): Promise<number> => {
      let rows = 0
      for await (const chunk of (await engine.stream(sql)).chunks) rows += chunk.rows
      return rows
    }
    await expect(read(late(n))).rejects.toThrow(/Could not convert string 'x' to INT32/)
    expect(await read(late(-1))).toBe(1_000_000)
    await engine.run('BEGIN')
    await expect(read(late(n))).rejects.toThrow(/failed before its last row/)
    await engine.run('ROLLBACK')
    expect(await read('FROM range(3)')).toBe(3)
  })

  test('a stopped stream ends in an error, and an abandoned one leaves no statement open', async () => {
    using engine = await Engine.open()
    const stopped = async (): Promise<void> => {
      for await (const { rows } of (await engine.stream('FROM range(100000000)')).chunks)
        if (rows > 0) engine.interrupt()
    }
    await expect(stopped()).rejects.toThrow(/Interrupt/)
    for await (const { rows } of (await engine.stream('FROM range(100000)')).chunks) if (rows > 0) break
    await engine.run('BEGIN')
    await engine.run('ROLLBACK')
  })
})

describe('after a fatal error, when DuckDB refuses every further statement', () => {
  const caused = new Error('FATAL Error: Failed to read')
  const met = new Error('FATAL Error: Failed: database has been invalidated because of a previous fatal error')
  afterEach(() => void vi.restoreAllMocks())
  const refuseRollback = (): void => {
    const { run } = DuckDBConnection.prototype
    vi.spyOn(DuckDBConnection.prototype, 'run').mockImplementation(async function (
      this: DuckDBConnection,
      sql,
      ...rest
    ) {
      if (sql === 'ROLLBACK') throw met
      return await run.call(this, sql, ...rest)
    })
  }

  test('a SELECT reports the error that it caused', async () => {
    using lost = await Engine.open()
    refuseRollback()
    vi.spyOn(DuckDBPreparedStatement.prototype, 'runAndReadAll').mockRejectedValue(caused)
    await expect(lost.ask('SELECT 1 AS a')).rejects.toBe(caused)
  })

  test('a stream reports the error with which it began or ended', async () => {
    using lost = await Engine.open()
    using other = await Engine.open()
    refuseRollback()
    const { chunks } = await lost.stream('SELECT 1 AS a')
    const fetching = vi.spyOn(DuckDBResult.prototype, 'fetchChunk').mockRejectedValue(caused)
    await expect(chunks.next()).rejects.toBe(caused)
    fetching.mockRestore()
    vi.spyOn(DuckDBConnection.prototype, 'stream').mockRejectedValue(caused)
    await expect(other.stream('SELECT 1 AS a')).rejects.toBe(caused)
  })
})

test('an appender is closed if the stream of its rows fails', async () => {
  using session = await Engine.open()
  await session.run('CREATE TEMP TABLE rows (a BIGINT)')
  const close = vi.spyOn(DuckDBAppender.prototype, 'closeSync')
  const stream = await session.vectors('FROM range(5000)')
  async function* torn(): typeof stream.chunks {
    for await (const chunk of stream.chunks) {
      yield chunk
      throw new RangeError('torn')
    }
  }
  await expect(session.append('rows', { ...stream, chunks: torn() })).rejects.toThrow('torn')
  expect(close).toHaveBeenCalledTimes(1)
  close.mockRestore()
})
