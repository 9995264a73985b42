// Configuration of a console process (specification: Console process configuration).
export interface ConsoleEnv {
  databaseUrl: string;
}
