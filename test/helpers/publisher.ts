import { publishTo } from './delta.ts'

// Publishes a lake: `node publisher.ts LAKE FOLDER`; made to be killed.
const [root = '', out = ''] = process.argv.slice(2)
await publishTo(root, out, { mark: String(process.pid) })
