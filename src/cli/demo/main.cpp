/// The program sluice-demo, which `sluice demo` becomes.
#include "cli/command.hpp"

int main(int argc, char** argv) {
  using namespace sluice::cli;
  return run_commands({demo_command, demo_instance_command}, argc, argv);
}
