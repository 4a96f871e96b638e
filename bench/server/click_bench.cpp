/// What a click costs `sluice serve`: the program as users run it, its clients in this process, on
/// the same machine. Refusals stand beside nginx's `return 200`; admissions beside the same sale
/// without HTTP, in a process of its own.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "clicks.hpp"
#include "sluice/open.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/when_all.hpp"
#include "support/database_rig.hpp"
#include "support/free_port.hpp"
#include "support/paths.hpp"
#include "support/process.hpp"
#include "support/process_cost.hpp"
#include "support/redis_server.hpp"
#include "support/report.hpp"
#include "support/temp_dir.hpp"

namespace {

using namespace sluice;
using namespace sluice::bench;
using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr std::size_t crowd = 256;
constexpr std::size_t refused = 64;  // clients of a sale that is sold out, and of nginx
constexpr std::size_t idle = 10'000;
constexpr std::size_t first = 200;  // what the first ones need is there behind them
constexpr std::size_t of_an_address = 900;
constexpr auto plenty = "1000000000";

struct Places {
  std::string name;
  std::string store;
  std::string orders;
};

/// The program, with a sale "tea" of so many units.
class Served {
 public:
  Served(const test::TempDir& folder, const Places& places, std::string stock, int loops)
      : output_(folder / ("serve-" + places.name)),
        process_({test::built_path("sluice-serve"),
                  "--store",
                  places.store,
                  "--orders",
                  places.orders,
                  "--sale",
                  "tea=" + stock,
                  "--listen",
                  "127.0.0.1:0",
                  "--health",
                  "127.0.0.1:0",
                  "--loops",
                  std::to_string(loops),
                  "--notice",
                  "0s",
                  "--json",
                  "--buyer-rate",
                  "0",
                  "--client-rate",
                  "0"},
                 {.directory = folder.path(), .environment = {}, .output = output_}) {
    constexpr std::string_view word = "\"port\":";
    for (int i = 0; i < 3000 && port_ == 0; ++i) {
      std::ostringstream text;
      text << std::ifstream{output_}.rdbuf();
      const auto at = text.str().find(word);
      if (at != std::string::npos && text.str().ends_with('\n'))
        port_ = static_cast<std::uint16_t>(std::stoi(text.str().substr(at + word.size())));
      else
        std::this_thread::sleep_for(10ms);
    }
    if (port_ == 0) throw std::runtime_error{"sluice-serve does not begin"};
  }

  std::uint16_t port() const { return port_; }
  const test::Process& process() const { return process_; }

 private:
  std::filesystem::path output_;
  test::Process process_;
  std::uint16_t port_ = 0;
};

class Nginx {
 public:
  explicit Nginx(const test::TempDir& folder)
      : port_(test::free_port()),
        process_({"nginx", "-c", configuration(folder, port_), "-p", folder.str()}) {
    for (int i = 0; i < 500; ++i) {
      try {
        ask_once(connect(port_).number());
        return;
      } catch (const std::system_error&) {  // not yet
        std::this_thread::sleep_for(10ms);
      }
    }
    throw std::runtime_error{"nginx does not answer"};
  }

  std::uint16_t port() const { return port_; }
  const test::Process& process() const { return process_; }

 private:
  static std::string configuration(const test::TempDir& folder, std::uint16_t port) {
    const auto file = (folder / "nginx.conf").string();
    const auto at = folder.str();
    std::ofstream{file} << fmt::format(
        "daemon off; master_process off; worker_processes 1; pid {0}/pid; error_log stderr crit;\n"
        "events {{ worker_connections 4096; }}\nhttp {{ access_log off;\n"
        "keepalive_requests 1000000000; client_body_temp_path {0}/b; proxy_temp_path {0}/p;\n"
        "fastcgi_temp_path {0}/f; uwsgi_temp_path {0}/u; scgi_temp_path {0}/s;\n"
        "server {{ listen 127.0.0.1:{1}; location / {{ default_type application/problem+json;\n"
        "return 200 '{{\"type\":\"urn:sluice:problem:sold-out\",\"title\":\"Nothing is left\","
        "\"status\":409}}'; }} }} }}\n",
        at, port);
    return file;
  }

  std::uint16_t port_;
  test::Process process_;
};

/// A purchase by a buyer who has not bought yet.
std::string click() {
  static std::uint64_t buyer = 0;
  return fmt::format(
      "POST /v1/sales/tea/orders HTTP/1.1\r\nHost: shop\r\nSluice-Buyer: {:012}\r\n"
      "Idempotency-Key: 8e03978e-40d5-43e8-bc93-6894a57f9324\r\nContent-Length: 0\r\n\r\n",
      ++buyer);
}

double cpu_of_an_answer(const test::Process& process, Crowd& clients,
                        std::chrono::milliseconds each) {
  const auto before = cpu_us_of(process.pid());
  const auto figures = clients.as_fast_as_answered(each);
  return (cpu_us_of(process.pid()) - before) / static_cast<double>(figures.answers);
}

/// A sale that is sold out: its POST, and nginx's `return 200` of the same bytes to the same
/// request.
Row refusals(const Options& options) {
  const test::TempDir folder;
  const Served served{folder,
                      {.name = "refusals",
                       .store = "embedded:" + (folder / "store").string(),
                       .orders = "sqlite:" + (folder / "orders.db").string()},
                      "1",
                      1};
  const Nginx nginx{folder};
  Crowd{served.port(), 1, click, "201"}.once();
  Crowd buyers{served.port(), refused, click, "409"};
  Crowd visitors{nginx.port(), refused, click, "200"};
  Row row{.figure = "a refusal, sold out: CPU of the server",
          .unit = "us",
          .values = {},
          .peer = "nginx return 200 of the same bytes",
          .peer_values = {},
          .goal = 1.0,
          .at_most = true};
  cpu_of_an_answer(served.process(), buyers, options.each / 4);
  cpu_of_an_answer(nginx.process(), visitors, options.each / 4);
  for (int round = 0; round < options.rounds; ++round) {
    row.values.push_back(cpu_of_an_answer(served.process(), buyers, options.each));
    row.peer_values.push_back(cpu_of_an_answer(nginx.process(), visitors, options.each));
  }
  return row;
}

Task<void> buy_until(Sale& sale, std::atomic<std::uint64_t>& next, std::uint64_t& done,
                     Steady::time_point end) {
  while (Steady::now() < end) {
    auto asked = sale.buy(BuyerId{fmt::format("{:012}", ++next)},
                          RequestId{"8e03978e-40d5-43e8-bc93-6894a57f9324"});
    const auto answer = co_await asked;
    if (answer.outcome != SaleOutcome::admitted) throw std::runtime_error{"not admitted"};
    ++done;
  }
}

/// Admissions a second without HTTP: the same store, database and worker, and as many buyers at
/// once, in a process that writes the figure into a file. Begun before this one has threads.
double without_http(const test::TempDir& folder, const Places& places,
                    std::chrono::milliseconds each) {
  const auto file = (folder / ("rate-" + places.name)).string();
  test::Process process{[&] {
    const auto store = open(places.store);
    const auto orders = open_order_store(places.orders);
    Sale sale = Sale::create(
        *store,
        {.name = "tea", .stock = 1'000'000'000, .limit = 1, .number_type = "TEA", .digits = 10},
        *orders);
    std::jthread worker{[&](const std::stop_token& stop) {
      const auto database = open_order_store(places.orders);
      OrderWorker{*store, sale, *database}.run(stop);
    }};
    std::atomic<std::uint64_t> next{0};
    std::uint64_t done = 0;
    const auto start = Steady::now();
    std::vector<Task<void>> buyers;
    for (std::size_t i = 0; i < crowd; ++i)
      buyers.push_back(buy_until(sale, next, done, start + each));
    when_all(std::move(buyers)).get();
    const auto rate =
        static_cast<double>(done) / std::chrono::duration<double>(Steady::now() - start).count();
    std::ofstream{file} << rate << '\n';
    worker.request_stop();
    return 0;
  }};
  if (process.wait() != 0) throw std::runtime_error{"the sale without HTTP failed"};
  double rate = 0;
  std::ifstream{file} >> rate;
  return rate;
}

struct Admissions {
  Row rate;
  Row cpu;
  Row latency;
};

/// Each round with a store and a database of its own.
template <class MakePlaces>
Admissions admissions(const Options& options, const std::string& what, MakePlaces places_of,
                      bool has_goal) {
  Admissions rows{
      .rate = {.figure = fmt::format("clicks admitted, {} connections, {}", crowd, what),
               .unit = "1/s",
               .values = {},
               .peer = "the same without HTTP",
               .peer_values = {},
               .goal = has_goal ? std::optional{0.4} : std::nullopt},
      .cpu = {.figure = fmt::format("CPU of the service for a click, {}", what), .unit = "us"},
      .latency = {.figure = fmt::format("p99 of a click at 70 % of that rate, {}", what),
                  .unit = "us",
                  .values = {},
                  .peer = "its p50",
                  .peer_values = {},
                  .goal = 5.0,
                  .at_most = true}};
  for (int round = 0; round < options.rounds; ++round) {
    const test::TempDir folder;
    rows.rate.peer_values.push_back(
        without_http(folder, places_of(folder, fmt::format("plain{}", round)), options.each));
    const Served served{folder, places_of(folder, fmt::format("http{}", round)), plenty, 2};
    Crowd buyers{served.port(), crowd, click, "201"};
    buyers.as_fast_as_answered(options.each / 4);
    const auto before = cpu_us_of(served.process().pid());
    const auto fast = buyers.as_fast_as_answered(options.each);
    rows.cpu.values.push_back((cpu_us_of(served.process().pid()) - before) /
                              static_cast<double>(fast.answers));
    rows.rate.values.push_back(fast.rate());
    const auto steady = buyers.at_rate(0.7 * fast.rate(), options.each);
    rows.latency.values.push_back(steady.p99_us);
    rows.latency.peer_values.push_back(steady.p50_us);
  }
  return rows;
}

Places on_disk(const test::TempDir& folder, const std::string& name, std::string_view fsync) {
  return {.name = name,
          .store = fmt::format("embedded:{}?fsync={}", (folder / name).string(), fsync),
          .orders = "sqlite:" + (folder / (name + ".db")).string()};
}

void connect_idle(const Served& served, std::vector<Descriptor>& sockets, std::size_t count) {
  while (sockets.size() < count) {
    sockets.push_back(connect(served.port(), 2 + sockets.size() / of_an_address));
    ask_once(sockets.back().number());
  }
}

Row idle_memory() {
  const test::TempDir folder;
  const Served served{folder, on_disk(folder, "idle", "always"), "1", 1};
  std::vector<Descriptor> sockets;
  connect_idle(served, sockets, first);
  const auto before = memory_of(served.process().pid());
  connect_idle(served, sockets, idle);
  return {
      .figure = "memory of an idle connection",
      .unit = "bytes",
      .values = {(memory_of(served.process().pid()) - before) / static_cast<double>(idle - first)},
      .peer = {},
      .peer_values = {},
      .goal = 1024,
      .at_most = true};
}

void raise_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void add(Report& report, Admissions rows) {
  report.add(std::move(rows.rate));
  report.add(std::move(rows.cpu));
  report.add(std::move(rows.latency));
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = parse_options(argc, argv);
  Report report{"server", options};
  raise_descriptors();

  if (options.wants("refusals")) report.add(refusals(options));
  for (const auto* const fsync : {"always", "everysec"})
    if (options.wants(fsync))
      add(report, admissions(
                      options, fmt::format("embedded, fsync={}, and SQLite", fsync),
                      [&](const test::TempDir& folder, const std::string& name) {
                        return on_disk(folder, name, fsync);
                      },
                      true));
  if (options.wants("servers")) {
    const auto database = test::start_postgresql();
    const test::RedisServer redis;
    add(report, admissions(
                    options, "Redis and PostgreSQL",
                    [&](const test::TempDir&, const std::string& name) {
                      open(redis.url())->run({"FLUSHALL"}).get();
                      return Places{.name = name,
                                    .store = redis.url(),
                                    .orders = database->url(database->make_database())};
                    },
                    false));
  }
  if (options.wants("idle")) report.add(idle_memory());
  report.print();
}
