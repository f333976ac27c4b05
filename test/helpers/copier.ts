import { copyLake } from '../../src/maintenance/publish/lake-copy.ts'
import { folderAt } from '../../src/maintenance/publish/destination.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { publishTo } from './delta.ts'
import { pulled } from './mirrors.ts'

// A process to be killed: `publish` of tables, `pull` into a mirror, `restore`, or the copy that `publish --lake`
// makes.
const [how, source = '', target = ''] = process.argv.slice(2)
if (how === 'tables') await publishTo(source, target, { mark: String(process.pid) })
else if (how === 'pull') await pulled(target, source)
else if (how === 'restore') await pulled(target, source, {}, { own: true, thorough: true })
else {
  const [from, to] = [source, target].map((text) => folderAt(text, { disk: realDisk, mark: String(process.pid) }))
  if (!from || !to) throw new Error('source and target')
  const scratch = `${target}-scratch`
  const signal = new AbortController().signal
  await copyLake({ from, to, until: Infinity, mirrorOf: (lake) => lake, scratch, near: false }, { signal })
}
