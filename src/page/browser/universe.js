export const title = 'Universe'
export async function draw(place) {
  place.replaceChildren('…')
}
