import { usage } from '../errors.ts'
import type { Destination, Reach } from './destination.ts'
import { folderAt } from './folder.ts'
import { s3At } from './s3.ts'

/** The destination that a text names. */
export function destinationOf(text: string, reach: Reach): Destination {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]
  if (scheme?.toLowerCase() === 's3' && reach.web) return s3At(text, reach.web)
  if (scheme !== undefined || text === '')
    throw usage(`destination ${text.replace(/\/\/[^/]*@/, '//…@')}`, {
      expected: 'a folder or s3://bucket/prefix',
      got: scheme === undefined ? 'nothing' : `the scheme ${scheme}`,
    })
  return folderAt(text, reach)
}
