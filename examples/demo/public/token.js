const output = document.querySelector('#token-claims')

document.querySelector('#token-button').addEventListener('click', async () => {
  try {
    const { token } = await post('/auth/local/token')
    output.textContent = JSON.stringify(await post('/auth/local/verify-token', { token }), null, 2)
  } catch (error) {
    output.textContent = error.message
  }
})

async function post (path, body = {}) {
  const headers = { Accept: 'application/json', 'Content-Type': 'application/json' }
  const response = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.message)
  return answer
}
