const button = document.querySelector('#token-button')
const output = document.querySelector('#token-claims')

button.addEventListener('click', async () => {
  button.disabled = true
  output.textContent = 'Fetching …'
  try {
    const { token } = await post('/auth/local/token')
    const claims = await post('/auth/local/verify-token', { token })
    output.textContent = JSON.stringify(claims, null, 2)
  } catch (error) {
    output.textContent = error.message
  } finally {
    button.disabled = false
  }
})

async function post (path, body = {}) {
  const response = await fetch(path, {
    method: 'POST',
    headers: { Accept: 'application/json', 'Content-Type': 'application/json' },
    body: JSON.stringify(body)
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.message)
  return answer
}
