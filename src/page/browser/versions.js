export const title = 'Versions'
export async function draw(place) {
  place.replaceChildren('…')
}
