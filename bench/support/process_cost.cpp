#include "support/process_cost.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sluice::bench {

double cpu_us_of(pid_t process) {
  double ns = 0;
  for (const auto& task :
       std::filesystem::directory_iterator{fmt::format("/proc/{}/task", process)}) {
    double of_task = 0;
    std::ifstream{task.path() / "schedstat"} >> of_task;
    ns += of_task;
  }
  return ns / 1000;
}

double memory_of(pid_t process) {
  std::size_t whole = 0, resident = 0, of_files = 0;
  std::ifstream{fmt::format("/proc/{}/statm", process)} >> whole >> resident >> of_files;
  return static_cast<double>(resident - of_files) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace sluice::bench
