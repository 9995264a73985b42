// Challenges that browsers were given and have not answered: each is good once, for five minutes.
import type { Knex } from 'knex';

const LIFETIME = "interval '5 minutes'";
/** Anybody may ask for one: the oldest beyond these of an address are dropped. */
const MOST_OF_ADDRESS = 20;

/** Keeps a challenge; `sessionId` names whose registration it is, null a sign-in. */
export async function keepChallenge(
  sql: Knex,
  challenge: string,
  sessionId: string | null,
  address: string,
): Promise<void> {
  await sql.raw(
    `with expired as (delete from passkey_challenge where expires_at < now()),
     surplus as (
       delete from passkey_challenge where challenge in (
         select challenge from passkey_challenge where address = :address
          order by created_at desc offset ${MOST_OF_ADDRESS - 1}))
     insert into passkey_challenge (challenge, session_id, address, expires_at)
     values (:challenge, :sessionId, :address, now() + ${LIFETIME})`,
    { challenge, sessionId, address },
  );
}

/** Takes a challenge, so that nobody can again; false when it is not one of this session (or of sign-ins). */
export async function takeChallenge(sql: Knex, challenge: string, sessionId: string | null): Promise<boolean> {
  const { rowCount } = await sql.raw(
    `delete from passkey_challenge
      where challenge = ? and session_id is not distinct from ? and expires_at > now()`,
    [challenge, sessionId],
  );
  return rowCount === 1;
}
