/// The program sluice-bench, which `sluice bench` becomes.
#include "cli/command.hpp"

int main(int argc, char** argv) {
  using namespace sluice::cli;
  return run_commands({bench_command}, argc, argv);
}
