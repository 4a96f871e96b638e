/// The program sluice-doctor, which `sluice doctor` and `sluice explain` become.
#include "cli/command.hpp"

int main(int argc, char** argv) {
  using namespace sluice::cli;
  return run_commands({doctor_command, explain_command}, argc, argv);
}
