export const title = 'Coverage'
export async function draw(place) {
  place.replaceChildren('…')
}
