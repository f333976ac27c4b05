/** A node of Babel's tree, as far as it is looked at here. */
interface Node {
  readonly type: string
  readonly value?: unknown
  readonly name?: string
  readonly callee?: Node
  readonly key?: Node
  readonly property?: Node
  readonly arguments?: readonly Node[]
  readonly quasis?: readonly { readonly value: { readonly raw: string } }[]
}

interface Path {
  readonly node: Node
  readonly parent?: Node | null
}

const refusals = ['LakeError', 'Error', 'TypeError', 'usage', 'complain', 'stderr', 'note', 'say']
const keys = ['subject', 'expected', 'got', 'next', 'summary', 'help', 'message', 'note', 'words', 'means', 'does']

/**
 * Why nothing is changed below a node: it holds only words. These are what an error is told with (its kind is not), and
 * texts of several words that are not SQL. Keys, names, units and SQL are single words or carry signs, and are changed.
 */
export function wordsOnly({ node, parent }: Path): string | undefined {
  if (parent === undefined || parent === null) return undefined
  if (isTold(node, parent)) return 'words of an error'
  if (parent.type === 'ObjectProperty' && node !== parent.key && keys.includes(parent.key?.name ?? '')) {
    if (isText(node)) return 'words'
  }
  return isText(node) && isProse(textOf(node)) ? 'words' : undefined
}

/** What an error is made of, but for the kind, which decides the exit code. */
function isTold(node: Node, parent: Node): boolean {
  if (parent.type !== 'NewExpression' && parent.type !== 'CallExpression') return false
  const name = parent.callee?.name ?? parent.callee?.property?.name ?? ''
  if (node === parent.callee || !refusals.includes(name)) return false
  return !(name === 'LakeError' && node === parent.arguments?.[0]) && !/Function/.test(node.type)
}

function isText(node: Node): boolean {
  return node.type === 'StringLiteral' || node.type === 'TemplateLiteral'
}

function textOf(node: Node): string {
  return node.quasis?.map(({ value }) => value.raw).join('x') ?? String(node.value)
}

/** At least two words, and nothing that SQL, a path or a pattern would have. */
function isProse(text: string): boolean {
  const sql =
    /\b(?:SELECT|FROM|WHERE|AND|OR|JOIN|BY|AS|IN|IS|NOT|NULL|INSERT|DELETE|UPDATE|CREATE|VALUES|ON)\b|[=<>*$|&]|::/
  return /[a-z]{2,}[,:;]? +[a-z]{2,}/i.test(text) && !sql.test(text)
}
