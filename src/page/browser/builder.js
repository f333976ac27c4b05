export const title = 'Builder'
export async function draw(place) {
  place.replaceChildren('…')
}
