// Loaded before a program (`node --import`): something goes wrong that nobody foresaw.
Date.now = () => {
  throw new Error('the clock is broken')
}
