/// The program sluice-loadtest, which `sluice loadtest` becomes.
#include "cli/command.hpp"

int main(int argc, char** argv) {
  using namespace sluice::cli;
  return run_commands({load_command, demo_crowd_command}, argc, argv);
}
