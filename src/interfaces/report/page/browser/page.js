(() => {
  const map = document.getElementById('map')
  const data = document.getElementById('months')
  const readout = document.getElementById('readout')
  if (!map || !data || !readout) return
  const { first, rows } = JSON.parse(data.textContent)
  const all = [...map.querySelectorAll('[data-r]')]
  const months = rows.length ? rows[0][0].length : 0
  let at = months - 1
  const name = (m) => { const i = first + m; return (1970 + Math.floor(i / 12)) + '-' + String((i % 12 + 12) % 12 + 1).padStart(2, '0') }
  const number = (n) => n.toLocaleString('en-US')
  const tell = (row, m) => {
    const r = rows[row.dataset.r]
    if (!r) return
    at = Math.max(0, Math.min(months - 1, m))
    const due = r[0][at], held = r[1][at], failed = r[2] ? r[2][at] : 0
    const said = due === 0 ? 'nothing due' : number(held) + ' of ' + number(due) + ' due points' +
      (failed ? ', ' + number(failed) + ' in failed windows' : held < due ? ', ' + number(due - held) + ' missing' : '')
    readout.textContent = name(at) + '  ' + row.querySelector('.name').title + '  ' + said
    for (const other of map.querySelectorAll('.on')) other.classList.remove('on')
    row.classList.add('on')
    map.style.setProperty('--at', ((at + 0.5) / months * 100) + '%')
  }
  const monthAt = (cell, x) => { const box = cell.getBoundingClientRect(); return Math.floor((x - box.left) / box.width * months) }
  map.addEventListener('pointermove', (event) => {
    const row = event.target.closest('[data-r]')
    if (!row) return
    const cell = row.querySelector('.heat')
    tell(row, cell.contains(event.target) ? monthAt(cell, event.clientX) : at)
  })
  map.addEventListener('focusin', (event) => { const row = event.target.closest('[data-r]'); if (row) tell(row, at) })
  map.addEventListener('keydown', (event) => {
    const row = event.target.closest('[data-r]')
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return
    const index = all.indexOf(row)
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12 }
    const moves = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: months - 1 }
    if (event.key in steps) {
      const next = all[Math.max(0, Math.min(all.length - 1, index + steps[event.key]))]
      row.tabIndex = -1
      next.tabIndex = 0
      next.focus()
    } else if (event.key in moves) tell(row, moves[event.key])
    else return
    event.preventDefault()
  })
})()
