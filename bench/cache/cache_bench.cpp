/// The cache: what its near values cost.
#include "near.hpp"
#include "support/report.hpp"

int main(int argc, char** argv) {
  using namespace sluice::bench;
  const Options options = parse_options(argc, argv);
  Report report{"cache", options};
  if (options.wants("near"))
    for (auto& row : near_rows(options)) report.add(std::move(row));
  report.print();
}
