// Loaded before a program (`node --import`): the process is interrupted as soon as it listens for that, so that the
// first thing that heeds a stop ends there, on a slow machine and on a fast one.
process.on('newListener', (name) => {
  if (name === 'SIGINT') setImmediate(() => process.emit('SIGINT'))
})
