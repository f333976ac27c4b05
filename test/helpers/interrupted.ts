// Loaded before a program (`node --import`): the process is interrupted as soon as it listens for that, so that the
// first thing that heeds a stop ends there, on a slow machine and on a fast one. Once: a second signal ends a program
// at once.
function interrupt(name: string | symbol): void {
  if (name !== 'SIGINT') return
  process.off('newListener', interrupt)
  setImmediate(() => process.emit('SIGINT'))
}
process.on('newListener', interrupt)
