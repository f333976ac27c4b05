import { hash } from 'node:crypto'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { encodeEntry, type Entry } from '../../src/lake/ledger/entry.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { foldJournal } from '../../src/lake/ledger/checkpoint-writer.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { certifiedOfFile, checked, checkers, digesting } from '../helpers/certified.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { writing } from '../helpers/ledgers.ts'
import { entryText, writeEntryText } from '../helpers/entries.ts'

const withCertified = certifiedOfFile()

const entriesOf = (root: string): string[] =>
  readdirSync(join(root, 'journal')).filter((name) => /^\d+\.json\.gz$/.test(name))
const entryAt = (root: string, name: string): Entry => {
  const { sha256: _, ...entry } = JSON.parse(entryText(join(root, 'journal', name))) as Entry & {
    sha256: string
  }
  return entry
}

/** Writes the journal anew from an entry on, each following the one before, as whoever owns the lake can. */
async function rewritten(root: string, from: string, change: (entry: Entry) => Entry): Promise<void> {
  let previous: string | undefined
  for (const name of entriesOf(root).toSorted()) {
    if (name < from) continue
    const held = entryAt(root, name)
    const entry = { ...(name === from ? change(held) : held), ...(previous !== undefined && { previous }) }
    const { text, digest } = encodeEntry(entry)
    writeEntryText(join(root, 'journal', name), text)
    previous = digest
  }
  for (const name of readdirSync(root).filter((one) => one.startsWith('ledger.sqlite'))) rmSync(join(root, name))
  ;(await Ledger.rebuild(root)).close()
}

test('L6: a head stored elsewhere shows that and where a journal was rewritten', async () => {
  await withCertified(async ({ root, home, run }) => {
    expect(await run('verify', '--head', 'old.txt', '--key', 'k.key')).toMatchObject({ code: 0, out: /^extends/ })
    const whole = join(home, 'whole')
    cpSync(root, whole, { recursive: true })
    const back = (): void => {
      rmSync(root, { recursive: true })
      cpSync(whole, root, { recursive: true })
    }
    const [, second = ''] = entriesOf(root)
    await rewritten(root, second, (entry) => ({ ...entry, program: 'pitlake other' }))
    // The lake itself finds nothing: each entry follows the one before.
    expect((await run('sql', 'SELECT count(*) FROM points')).code).toBe(0)
    const fork = await run('verify', '--head', 'old.txt', '--json')
    expect(fork.code).toBe(4)
    expect(JSON.parse(fork.out)).toMatchObject({ verdict: 'fork', first: { from: 1 } })

    // A file changed together with every digest that tells of it.
    back()
    const newest =
      entriesOf(root)
        .toSorted()
        .findLast((name) => entryAt(root, name).files.add.length > 0) ?? ''
    const [file] = entryAt(root, newest).files.add
    const path = join(root, file?.path ?? '')
    const { createHash } = await import('node:crypto')
    const bytes = Buffer.concat([readFileSync(path), Buffer.from('x')])
    writeFileSync(path, bytes)
    const told = { bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
    await rewritten(root, newest, (entry) => {
      const add = entry.files.add.map((one) => (one.path === file?.path ? { ...one, ...told } : one))
      return { ...entry, files: { ...entry.files, add } }
    })
    expect(await run('verify', '--head', 'old.txt')).toMatchObject({ code: 4, out: /^fork/ })

    // One entry exchanged in its place: the ledger knows which.
    back()
    const { text } = encodeEntry({ ...entryAt(root, second), program: 'pitlake other' })
    writeEntryText(join(root, 'journal', second), text)
    const damaged = await run('verify', '--head', 'old.txt', '--json')
    expect(damaged.code).toBe(4)
    expect(JSON.parse(damaged.out)).toMatchObject({ verdict: 'damaged', first: { from: 2, to: 2 } })

    // A byte of a file.
    back()
    writeFileSync(path, bytes)
    expect(await run('verify', '--head', 'old.txt')).toMatchObject({
      code: 4,
      out: `damaged: ${file?.path}: ${bytes.length} bytes, expected ${bytes.length - 1}\n`,
    })
  })
})

test('L6: an index that lists fewer files or other rules than the log is damaged, and certifies nothing', async () => {
  await withCertified(async ({ root, run }) => {
    const index = join(root, 'ledger.sqlite')
    const whole = readFileSync(index)
    for (const [change, reason] of [
      ["DELETE FROM files WHERE tbl = 'points' AND removed_version IS NULL", /does not list the files/],
      ["UPDATE rules SET rules = replace(rules, 'assumed', 'stated')", /does not have the rules/],
    ] as const) {
      await writing(root, async (ledger) => {
        ledger.exec(change)
        await Promise.resolve()
      })
      expect(await run('verify', '--head', 'old.txt'), change).toMatchObject({ code: 4, out: reason })
      expect(await run('certify', 'q.parquet', '--out', 'x.json'), change).toMatchObject({ code: 4 })
      for (const name of readdirSync(root).filter((one) => one.startsWith('ledger.sqlite'))) rmSync(join(root, name))
      writeFileSync(index, whole)
    }
    expect(await run('certify', 'q.parquet', '--out', 'x.json')).toMatchObject({ code: 0 })
  })
})

test('L6: an older copy is behind, forks when it commits, and may begin a new log', async () => {
  await withCertified(async ({ root, home, run }) => {
    const older = join(home, 'older')
    cpSync(root, older, { recursive: true })
    await run('preregister', 'old.txt')
    writeFileSync(join(home, 'new.txt'), (await run('head')).out)
    rmSync(root, { recursive: true })
    cpSync(older, root, { recursive: true })
    expect(await run('verify', '--head', 'new.txt')).toMatchObject({ code: 6, out: /^behind: the lake is behind by 1/ })
    writeFileSync(join(home, 'other.sql'), 'SELECT 1')
    await run('preregister', 'other.sql')
    const fork = await run('verify', '--head', 'new.txt', '--json')
    const { first, head } = JSON.parse(fork.out) as { first: object; head: { size: number } }
    expect(fork.code).toBe(4)
    // The heads that the lake keeps tell that all before it is as it was.
    expect(first).toEqual({ from: head.size, to: head.size })
    expect(await run('verify', '--head', 'old.txt')).toMatchObject({ code: 0 })

    // A certificate leads from no head of the other history, whichever the lake has kept.
    cpSync(join(home, 'new.txt'), join(root, 'heads', `${String(head.size).padStart(10, '0')}.txt`))
    await run('preregister', 'old.txt')
    expect(await run('certify', 'q.parquet', '--out', 'f.json')).toMatchObject({ code: 0 })
    for (const checker of checkers) {
      expect(checked(checker, home, ['f.json', '--head', 'old.txt'])).toMatchObject({ status: 0 })
      expect(checked(checker, home, ['f.json', '--head', 'new.txt'])).toMatchObject({
        status: 4,
        lines: [/no proof leads/],
      })
    }
    const since = ['--since', 'new.txt']
    expect(await run('certify', 'q.parquet', '--out', 'f.json', ...since)).toMatchObject({
      code: 2,
      message: /history/,
    })

    expect(await run('verify', '--head', 'new.txt', '--adopt')).toMatchObject({
      code: 0,
      out: /^adopted: .*a new log begins/,
    })
    const [origin] = (await run('head')).out.split('\n')
    expect(origin).toMatch(/\/2$/)
    expect(await run('verify', '--head', 'new.txt')).toMatchObject({ code: 4, out: /began a new log/ })
    expect(await run('verify', '--head', 'old.txt')).toMatchObject({ code: 0 })
  })
})

test('L6: heads survive checkpoints, vacuum and a rebuilt index, and keys stay outside and closed', async () => {
  await withCertified(async ({ root, home, run }) => {
    await writing(root, async (ledger) => await foldJournal(ledger, commitDeps(), 1))
    await run('vacuum', '--keep', '0s', '--yes')
    const { out } = await run('head')
    rmSync(join(root, 'ledger.sqlite'))
    ;(await Ledger.rebuild(root)).close()
    expect(entriesOf(root)).not.toContain('0000000001.json.gz')
    expect((await run('head')).out).toBe(out)
    expect(await run('verify', '--head', 'old.txt')).toMatchObject({ code: 0 })

    expect(statSync(join(home, 'k.key')).mode & 0o777).toBe(0o600)
    expect(await run('keygen')).toMatchObject({ code: 2, message: /never written over/ })
    expect(await run('keygen', '--out', join(root, 'here.key'))).toMatchObject({
      code: 2,
      message: /outside the lake/,
    })
    await run('keygen', '--out', 'other.key')
    expect(await run('verify', '--head', 'old.txt', '--key', 'other.key')).toMatchObject({ code: 4, out: /^unsigned/ })
    // No file of the lake holds the secret.
    const secret = readFileSync(join(home, 'k.key'), 'utf8').split('+').slice(4).join('+').trim()
    expect(secret).toHaveLength(44)
    const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
    expect(files.filter((one) => readFileSync(join(one.parentPath, one.name), 'latin1').includes(secret))).toEqual([])
  })
})

test('L6: a third party finds a different result, a different key and a different history', async () => {
  await withCertified(async ({ root, home, run, sealed }) => {
    await run('publish', 'pub')
    const says = (...argv: readonly string[]) => checked(checkers[0], home, argv)
    expect(says('c.json', '--files', root, '--result', 'q.parquet', '--head', 'old.txt')).toMatchObject({
      status: 0,
      lines: [
        expect.stringMatching(/^valid.*note of the stamp are as listed; the statistic comes out again; not proved/),
      ],
    })
    // Later points leave the certificate as it is: they came after its entry.
    const { out } = await run('head')
    expect(readFileSync(join(home, 'pub', 'head.txt'), 'utf8')).toBe(out)
    await run('keygen', '--out', 'other.key')
    const other = (await run('certify', 'q.parquet', '--out', 'o.json', '--key', 'other.key')).code
    expect(other).toBe(0)
    const own = (JSON.parse(readFileSync(join(home, 'c.json'), 'utf8')) as { public: string }).public
    for (const checker of checkers) {
      expect(checked(checker, home, ['c.json', '--key', own])).toMatchObject({ status: 0 })
      expect(checked(checker, home, ['o.json', '--key', own])).toMatchObject({ status: 4, lines: [/another key/] })
      writeFileSync(join(home, 'bad.txt'), readFileSync(join(home, 'old.txt'), 'utf8').replace(/\n\d+\n/, '\n4\n'))
      expect(checked(checker, home, ['c.json', '--head', 'bad.txt'])).toMatchObject({ status: 4, lines: [/wrong/] })
    }
    // The reply of an authority holds the digest of what was sent to it.
    const digest = hash('sha256', readFileSync(join(home, 'old.txt')))
    const reply = Buffer.concat([Buffer.from('a reply'), Buffer.from(digest, 'hex')])
    writeFileSync(join(home, 'reply.tsr'), reply)
    expect(await run('head', '--attach', 'reply.tsr')).toMatchObject({ code: 0 })
    await run('certify', 'q.parquet', '--out', 't.json')
    const text = readFileSync(join(home, 't.json'), 'utf8')
    const other64 = Buffer.from(reply.toReversed()).toString('base64')
    const forged = text.slice(0, text.lastIndexOf(',\n"signature": ')).replace(reply.toString('base64'), other64)
    writeFileSync(join(home, 'f.json'), sealed(forged))
    for (const checker of checkers) {
      const proof = `openssl ts -verify -digest ${digest} -in \\d+.tsr -CAfile CA.pem; not proved`
      const said = [expect.stringMatching(new RegExp(proof)), expect.stringMatching(/^not valid.*something else/)]
      expect(checked(checker, home, ['t.json', 'f.json'])).toMatchObject({ status: 4, lines: said })
    }
    expect(root).not.toBe(home)
  })
})

test('L6: a third party with a copy finds changed and lost files and a different stamp', async () => {
  await withCertified(async ({ home, root, certificate }) => {
    const copy = join(home, 'copy')
    cpSync(root, copy, { recursive: true })
    const { live, stamp } = JSON.parse(certificate) as {
      readonly live: { readonly lists: Readonly<Record<string, readonly string[]>> }
      readonly stamp: { readonly path: string }
    }
    const [file = ''] = Object.values(live.lists)
      .flat()
      .map((line) => line.split(' ')[0] ?? '')
    const says = (): readonly (readonly string[])[] =>
      checkers.map((checker) => checked(checker, home, ['c.json', '--files', copy]).lines)
    const all = (reason: RegExp) => checkers.map(() => [expect.stringMatching(reason)])
    expect(says()).toEqual(all(/^valid.*\d files and the note of the stamp are as listed; not proved/))
    for (const [path, lost] of [
      [file, /^not valid.*is not in the copy/],
      [stamp.path, /^valid.*the note of the stamp is not in the copy/],
    ] as const) {
      const whole = readFileSync(join(copy, path))
      writeFileSync(join(copy, path), Buffer.concat([whole, Buffer.from(' ')]))
      expect(says(), path).toEqual(all(/^not valid.*has other bytes in the copy/))
      rmSync(join(copy, path))
      expect(says(), path).toEqual(all(lost))
      writeFileSync(join(copy, path), whole)
    }
    expect(says()).toEqual(all(/^valid/))
  })
})

test('L6: a third party with the result finds a different statistic and one that was not stamped', async () => {
  await withCertified(async ({ home, certificate, sealed }) => {
    const [body = ''] = certificate.split(',\n"signature": ')
    const statistic = 'SELECT sum(v) AS s, count(*) AS n FROM result'
    expect(body).toContain(statistic)
    const lies = [
      [body.replace('"values":{"s":', '"values":{"other":'), /statistic is another/],
      [body.replace(/"rows_sha256":"./, '"rows_sha256":"x'), /stamped otherwise/],
      // A comment hides its own rows from a search of the text.
      [body.replace(statistic, `WITH result/**/AS (SELECT 3.9 AS v) ${statistic}`), /does not read the result alone/],
      [body.replace(statistic, `${statistic}, (VALUES (1))`), /does not read the result alone/],
      [body.replace(statistic, 'SELECT 1 AS s, 2 AS n FROM range(1) AS result'), /does not read the result alone/],
    ] as const
    for (const [n, [lie]] of lies.entries()) {
      expect(lie, String(n)).not.toBe(body)
      writeFileSync(join(home, `lie-${n}.json`), sealed(lie))
    }
    const names = lies.map((_, n) => `lie-${n}.json`)
    for (const checker of digesting) {
      expect(checked(checker, home, [...names, '--result', 'q.parquet']).lines).toEqual(
        lies.map(([, why]) => expect.stringMatching(why)),
      )
      expect(checked(checker, home, ['c.json', '--result', 'result.parquet'])).toMatchObject({
        status: 4,
        lines: [/the result is another file/],
      })
    }
  })
})

test('L6: a statistic that reads anything but the result is refused', async () => {
  await withCertified(async ({ run }) => {
    for (const sql of [
      'WITH result AS (SELECT 3.9 AS v) SELECT v FROM result',
      'SELECT 3.9 AS v',
      "SELECT count(*) AS n FROM result, 'q.parquet'",
      'SELECT count(*) AS n FROM result, range(3)',
      'SELECT count(*) AS n FROM result, (VALUES (1))',
      'SELECT 1 AS n FROM result; SELECT 2 AS n FROM result',
    ])
      expect(await run('certify', 'q.parquet', '--out', 'x.json', '--statistic', sql), sql).toMatchObject({
        code: 2,
        message: /reads the table result and nothing else/,
      })
    const sql = 'WITH r AS (FROM result) SELECT max(v) AS m FROM r'
    expect(await run('certify', 'q.parquet', '--out', 'x.json', '--statistic', sql)).toMatchObject({ code: 0 })
  })
})

test('L6: a copy shows that a later merge left values as they were, or that it did not', async () => {
  await withCertified(async ({ home, root, run }) => {
    const copy = join(home, 'copy')
    cpSync(root, copy, { recursive: true })
    const against = async () => await run('verify', '--head', 'old.txt', '--against', 'copy')
    expect(await against()).toMatchObject({ code: 0, out: /files and 0 rows of replaced files are as in the copy/ })
    const replace = async (change: string): Promise<void> => {
      using engine = await Engine.open()
      await writing(root, async (ledger) => {
        const file = liveFiles(ledger, { table: 'points' }).findLast(({ metric }) => metric === 'supply/current_pit')
        if (file === undefined) throw new Error('no file')
        await engine.run(
          `CREATE OR REPLACE TABLE p AS FROM read_parquet(${quote(join(root, file.path))}, hive_partitioning = false)`,
        )
        if (change !== '') await engine.run(change)
        mkdirSync(join(root, 'spool'), { recursive: true })
        await engine.run(`COPY p TO ${quote(join(root, 'spool', 'merged'))} (FORMAT parquet)`)
        const {
          bytes: _bytes,
          sha256: _sha256,
          added_version: _a,
          removed_version: _r,
          dropped_version: _d,
          ...listed
        } = file
        const path = file.path.replace(
          /[^/]*$/,
          `${String(ledger.head().version + 1).padStart(10, '0')}-merged.parquet`,
        )
        const add = [{ ...listed, path, temporary: 'spool/merged' }]
        const draft = { job: 'merge', run: 'm', provider: { synthetic: true }, add, remove: [file.path] }
        await commit(ledger, { ...draft, provider: ledger.head().provider ?? draft.provider }, commitDeps())
      })
    }
    await replace('')
    expect(await against()).toMatchObject({
      code: 0,
      out: /files and [1-9]\d* rows of replaced files are as in the copy/,
    })
    await replace('UPDATE p SET v = v + 1 WHERE t = (SELECT min(t) FROM p)')
    expect(await against()).toMatchObject({
      code: 4,
      out: /^differs: .*supply\/current_pit: [1-9]\d* rows? of version \d+ missing, [1-9]\d* rows? added/,
    })
    // A copy of another history is none.
    await rewritten(copy, entriesOf(copy).toSorted()[1] ?? '', (entry) => ({ ...entry, program: 'pitlake other' }))
    expect(await against()).toMatchObject({ code: 2, message: /a copy with a different history/ })
  })
})

test('L6: a copy shows that a later merge left the listing of assets as it was, or that it did not', async () => {
  await withCertified(async ({ home, root, run }) => {
    const put = async (rows: string, replaced?: string): Promise<string> => {
      using engine = await Engine.open()
      return await writing(root, async (ledger) => {
        mkdirSync(join(root, 'spool'), { recursive: true })
        await engine.run(`COPY (${rows}) TO ${quote(join(root, 'spool', 'listed'))} (FORMAT parquet)`)
        const path = `assets/${String(ledger.head().version + 1).padStart(10, '0')}-listed.parquet`
        const about = {
          table: 'metric_assets',
          label: '',
          metric: null,
          interval: null,
          digest: null,
          meta: {},
        } as const
        const add = [{ ...about, path, rows: 2, min_t: null, max_t: null, temporary: 'spool/listed' }]
        const provider = ledger.head().provider ?? { synthetic: true }
        const remove = replaced === undefined ? [] : [replaced]
        await commit(ledger, { job: 'merge', run: 'm', provider, add, remove }, commitDeps())
        return path
      })
    }
    const rows = (symbol: string): string =>
      `SELECT id, symbol, NULL::VARCHAR AS addresses, '{}' AS record, TIMESTAMPTZ '2024-01-01 00:00:00+00' AS observed_at
       FROM (VALUES ('BTC', 'BTC'), ('ETH', '${symbol}')) AS listed (id, symbol)`
    const first = await put(rows('ETH'))
    cpSync(root, join(home, 'copy'), { recursive: true })
    const against = async () => await run('verify', '--head', 'old.txt', '--against', 'copy')
    const merged = await put(rows('ETH'), first)
    expect(await against()).toMatchObject({ code: 0, out: /files and 2 rows of replaced files are as in the copy/ })
    await put(rows('ETC'), merged)
    expect(await against()).toMatchObject({ code: 4, out: /^differs: .*metric_assets: 1 row of version \d+ missing/ })
  })
})

test('L6: each result is certified by the files of its version, whatever was committed since', async () => {
  await withCertified(async ({ home, run }) => {
    // The fetch of another day leaves the state of what was stamped as it was.
    writeFileSync(join(home, 'other.sql'), 'SELECT 2')
    await run('preregister', 'other.sql')
    for (const name of ['result', 'q']) {
      expect(await run('certify', `${name}.parquet`, '--out', `${name}.json`, '--page', `${name}.html`)).toMatchObject({
        code: 0,
      })
      for (const checker of checkers)
        expect(checked(checker, home, [`${name}.json`, '--head', 'old.txt'])).toMatchObject({ status: 0 })
    }
    const entryOf = (name: string): unknown =>
      (JSON.parse(readFileSync(join(home, name), 'utf8')) as { knowledge: { version: number } }).knowledge.version
    expect([entryOf('result.json'), entryOf('q.json')]).toEqual([3, 6])
    const { views } = JSON.parse(readFileSync(join(home, 'q.json'), 'utf8')) as {
      views: { text: Record<string, string> }
    }
    expect(Object.keys(views.text)).toEqual(['points'])
    expect(views.text['points']).toMatch(/^-- 10_points.sql\nCREATE OR REPLACE VIEW points AS\n[^]*read_parquet/)
    expect(readFileSync(join(home, 'q.json'), 'utf8')).not.toContain(home)
    const page = readFileSync(join(home, 'q.html'), 'utf8')
    expect(page).toContain('available_at AS ts')
    expect(page).not.toMatch(/<script|https?:/)
  })
})
