// Greets by name.

import { Failure, defineSkill, log, reply } from "kiso-sdk";

/** As [kiso.skill.args] in kiso.toml declares them. */
interface Args {
  name: string;
  loud: boolean;
}

// `call` has `tool`, `session` and `locale`. A `Failure` that is thrown is for the user; any other exception ends the call.
export const skill = defineSkill<Args>(({ name, loud }, call) => {
  log.info(`greeting in session ${call.session}`);
  if (name.trim() === "") {
    throw new Failure("bad-args", "the name is blank; say whom to greet");
  }
  const greeting = `Hello, ${name.trim()}!`;
  const text = loud ? greeting.toUpperCase() : greeting;
  return reply(text, { data: { greeting: text } });
});
