import { Engine } from './src/store/engine.ts'
import { monthSums } from './src/points/month-sums.ts'
const named = `(SELECT 'm/x' AS metric, '1h' AS "interval", * FROM read_parquet('/tmp/digests/p.parquet'))`
using e = await Engine.open(':memory:', { threads: 2, memoryLimit: '1GB' })
const cpu = async (name: string, f: () => Promise<unknown>) => { const b = process.cpuUsage(); const r = await f(); const u = process.cpuUsage(b); console.log(name.padEnd(30), ((u.user) / 2e6).toFixed(3), ((u.system) / 2e6).toFixed(3), 'us/row', r, Math.round(process.memoryUsage().rss / 1e6)) }
for (let i = 0; i < 4; i++) {
  await cpu('in order', async () => (await monthSums(e, named, true)).map((x) => x.months.size).length)
  await cpu('ordered', async () => (await monthSums(e, named)).map((x) => x.months.size).length)
}
