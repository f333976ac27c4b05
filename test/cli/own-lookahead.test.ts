import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withDesk } from '../helpers/importing.ts'

test('a query over imported user data is proved; values before their availability are a leak', async () => {
  await withDesk(async (desk) => {
    const days = Array.from({ length: 30 }, (_, n) => new Date(Date.UTC(2024, 0, 1 + n)).toISOString().slice(0, 10))
    const file = desk.put('p.csv', `asset,t,value\n${days.map((t, n) => `BTC,${t},${n}`).join('\n')}\n`)
    await desk.take([file, '--as', 'p', '--interval', '24h'])
    const decisions = desk.put('d[1].csv', `asset,ts\n${days.map((t) => `BTC,${t}T07:00:00Z`).join('\n')}\n`)
    // The name is no pattern of this one.
    desk.put('d1.csv', 'nothing\n')
    const scores = days.map((t, n) => `BTC,${t},${t}T06:00:00Z,${n % 7}`)
    const signal = desk.put('s.csv', `asset,day,available_at,score\n${scores.join('\n')}\n`)
    const own = [`d=${decisions}`, `s=${signal}`, `o=${signal}`].flatMap((one) => ['--own', one])
    const asked = ['lookahead', join(desk.folder, 'q.sql'), ...own]
    const prove = async (query: string) => {
      desk.put('q.sql', query)
      const { code, out, message } = await desk.run([...asked, '--cutoffs', '8', '--json'])
      expect(out, message).not.toBe('')
      const { verdict, depends_on: turns } = JSON.parse(out) as { verdict: string; depends_on: string[] }
      return [code, verdict, ...turns]
    }
    const known = 'FROM d ASOF JOIN s ON s.asset = d.asset AND s.available_at <= d.ts'
    expect(
      await prove(`SELECT d.asset, d.ts, s.score, j.v ${known} JOIN pit_join('d', 'own/p', '24h') AS j ON j.ts = d.ts`),
    ).toEqual([0, 'clean'])
    const early = `FROM d JOIN s ON s.asset = d.asset AND s.day = CAST(d.ts AS DATE) + 1`
    expect(await prove(`SELECT d.asset, d.ts, s.score ${early}`)).toEqual([4, 'leak', 'own s'])
    const both = `, (SELECT max(v) FROM points) AS v, (SELECT count(*) FROM o WHERE o.available_at <= d.ts) AS n`
    expect(await prove(`SELECT d.asset, d.ts, s.score${both} ${early}`)).toEqual([4, 'leak', 'own s', 'values'])
    const words = await desk.run(asked)
    expect(words.out).toContain(
      'the difference depends on later rows of s, which are your own, and on the values of later points',
    )
  })
})
