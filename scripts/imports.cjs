// How the modules of this program are found: Node asks the disk several times for each of hundreds.
const { enableCompileCache, registerHooks } = require('node:module')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')

// Packed, the program stands beside this file.
const packed = pathToFileURL(join(__dirname, '/')).href
// A package of which every .js file is a module.
const modules = '/node_modules/zod/'

/** A name relative to a module of the program, or of that package, already says where the file is and of which kind. */
function resolve(specifier, context, next) {
  const parent = context.parentURL
  if (!specifier.startsWith('.') || !parent?.startsWith('file:')) return next(specifier, context)
  const found = (format) => ({ url: new URL(specifier, parent).href, format, shortCircuit: true })
  // The messages of zod in sixty languages, of which this program speaks one.
  if (specifier === '../locales/index.js' && parent.includes(modules)) return next('../locales/en.js', context)
  if (specifier.endsWith('.ts') && !parent.includes('/node_modules/')) return found('module-typescript')
  if (specifier.endsWith('.js') && (parent.startsWith(packed) || parent.includes(modules))) return found('module')
  return next(specifier, context)
}

/** For a program that runs in this process: what it was compiled to is kept, what it imports is found at once. */
exports.quicken = () => {
  enableCompileCache?.()
  registerHooks?.({ resolve })
}
