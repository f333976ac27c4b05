/** Maximum bytes of a question: of a body over HTTP, of the arguments of a tool. */
export const longestQuestion: number = 2 ** 20

/** Bytes of the head of a request over HTTP, its address among them. */
export const longestHead = 8192
