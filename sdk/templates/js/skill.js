// Greets by name.

import { Failure, defineSkill, log, reply } from "kiso-sdk";

// The arguments are as [kiso.skill.args] in kiso.toml declares them; `call` has `tool`, `session` and `locale`.
// A `Failure` that is thrown is for the user; any other exception ends the call.
export const skill = defineSkill(({ name, loud }, call) => {
  log.info(`greeting in session ${call.session}`);
  if (name.trim() === "") {
    throw new Failure("bad-args", "the name is blank; say whom to greet");
  }
  const greeting = `Hello, ${name.trim()}!`;
  const text = loud ? greeting.toUpperCase() : greeting;
  return reply(text, { data: { greeting: text } });
});
