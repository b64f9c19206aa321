/* cli.h: the commands of `wick`. Each takes its own arguments (argv[0] is the command's name) and returns the
 * exit status: 0, 1 when something failed, 2 for wrong usage, and where said otherwise. */
#ifndef WK_CLI_H
#define WK_CLI_H

int cmd_info(int argc, char **argv);
int cmd_ops(int argc, char **argv);
int cmd_op(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_kernels(int argc, char **argv);
int cmd_run(int argc, char **argv);

#endif
