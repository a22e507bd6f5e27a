// Known vulnerabilities of what is installed with the package: `npm audit` without the tools of development.
import { spawnSync } from 'node:child_process'

const { stdout } = spawnSync('npm', ['audit', '--omit=dev', '--json'], { encoding: 'utf8' })
const { vulnerabilities, message } = JSON.parse(stdout)

if (vulnerabilities === undefined) {
  // Mirrors of the registry often do not pass these questions on.
  console.warn(
    `NOT CHECKED: the registry knows nothing of vulnerabilities (${String(message).split(' - ', 1)[0]}); run "npm run check:audit" against one that does.`
  )
} else {
  for (const { name, severity, range } of Object.values(vulnerabilities)) console.error(`${name} ${range}: ${severity}; see "npm audit"`)
  const count = Object.keys(vulnerabilities).length
  console.log(`${count} known vulnerabilities in runtime dependencies`)
  process.exitCode = count === 0 ? 0 : 1
}
