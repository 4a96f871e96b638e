#include "support/database_rig.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "support/free_port.hpp"

namespace sluice::test {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds database_patience{60};

std::string content_of(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

std::vector<pid_t> children_of(pid_t parent) {
  std::istringstream text{content_of(fmt::format("/proc/{0}/task/{0}/children", parent))};
  return {std::istream_iterator<pid_t>{text}, {}};
}

/// All its threads are stopped, or have ended.
bool stands_still(pid_t process) {
  std::error_code gone;
  for (const auto& task : fs::directory_iterator{fmt::format("/proc/{}/task", process), gone}) {
    const auto stat = content_of(task.path() / "stat");
    const auto name_end = stat.rfind(") ");
    if (name_end != std::string::npos &&
        std::string_view{"TtZX"}.find(stat[name_end + 2]) == std::string_view::npos)
      return false;
  }
  return true;
}

/// The newest that is installed: Debian keeps them out of PATH.
fs::path postgresql_programs() {
  fs::path newest;
  for (const auto* const root : {"/usr/lib/postgresql"})
    if (fs::exists(root))
      for (const auto& version : fs::directory_iterator{root})
        if (fs::exists(version.path() / "bin/initdb")) newest = std::max(newest, version.path());
  return newest / "bin";
}

class Postgresql final : public DatabaseServer {
 public:
  explicit Postgresql(std::vector<std::string> settings)
      : DatabaseServer("postgresql", "sluice"), settings_(std::move(settings)) {
    const auto data = (folder_ / "data").string();
    if (const auto [code, text] = run({programs_ / "initdb", "-D", data, "-A", "trust", "-U", user_,
                                       "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"});
        code != 0)
      throw std::runtime_error{"initdb: " + text};
    const auto rules = folder_ / "data/pg_hba.conf";
    const auto others = content_of(rules);
    std::ofstream{rules} << "host all shop 127.0.0.1/32 scram-sha-256\n" << others;
    start();
    sql("postgres", "CREATE ROLE shop LOGIN PASSWORD 's3cret@:/' SUPERUSER");
  }

  std::string sql(const std::string& database, const std::string& text) const override {
    const auto [code, output] =
        run({programs_ / "psql", "-h", folder_.str(), "-p", std::to_string(port_), "-U", user_,
             "-d", database, "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-c", text});
    if (code != 0) throw std::runtime_error{"psql: " + output};
    return output;
  }

  std::string socket() const override { return folder_.str(); }

 private:
  std::vector<std::string> command() const override {
    std::vector<std::string> words{programs_ / "postgres", "-D", (folder_ / "data").string()};
    const auto set = [&](const std::string& setting) {
      words.emplace_back("-c");
      words.push_back(setting);
    };
    set("listen_addresses=127.0.0.1");
    set(fmt::format("port={}", port_));
    set("unix_socket_directories=" + folder_.str());
    set("shared_buffers=32MB");
    set("ssl=on");
    set("ssl_cert_file=" + (folder_ / "server.pem").string());
    set("ssl_key_file=" + (folder_ / "server.key").string());
    for (const auto& setting : settings_) set(setting);
    return words;
  }

  bool answers() const override {
    return run({programs_ / "psql", "-h", folder_.str(), "-p", std::to_string(port_), "-U", user_,
                "-d", "postgres", "-X", "-q", "-c", "SELECT 1"})
               .first == 0;
  }

  const fs::path programs_ = postgresql_programs();
  const std::vector<std::string> settings_;
};

class MariaDb final : public DatabaseServer {
 public:
  explicit MariaDb(std::vector<std::string> settings)
      : DatabaseServer("mariadb", "root"), settings_(std::move(settings)) {
    if (const auto [code, text] =
            run({"mariadb-install-db", "--no-defaults", "--datadir=" + (folder_ / "data").string(),
                 temporary(), "--auth-root-authentication-method=normal", "--skip-test-db",
                 "--skip-name-resolve"});
        code != 0)
      throw std::runtime_error{"mariadb-install-db: " + text};
    start();
    sql("mysql",
        "CREATE USER shop@'127.0.0.1' IDENTIFIED BY 's3cret@:/';"
        "GRANT ALL ON `d%`.* TO shop@'127.0.0.1'");
  }

  std::string sql(const std::string& database, const std::string& text) const override {
    const auto [code, output] = run({"mariadb", "--no-defaults", "--skip-ssl", "-u" + user_, "-S",
                                     socket(), "-N", "-B", "-D", database, "-e", text});
    if (code != 0) throw std::runtime_error{"mariadb: " + output};
    return output;
  }

  std::string socket() const override { return (folder_ / "s").string(); }

 private:
  /// Each server removes at its start what another one keeps in a folder that they share.
  std::string temporary() const { return "--tmpdir=" + folder_.str(); }

  std::vector<std::string> command() const override {
    std::vector<std::string> words{
        fs::exists("/usr/sbin/mariadbd") ? "/usr/sbin/mariadbd" : "mariadbd",
        "--no-defaults",
        "--datadir=" + (folder_ / "data").string(),
        temporary(),
        "--socket=" + socket(),
        "--pid-file=" + (folder_ / "pid").string(),
        "--bind-address=127.0.0.1",
        fmt::format("--port={}", port_),
        "--skip-name-resolve",
        "--innodb-buffer-pool-size=64M",
        "--innodb-log-file-size=32M",
        "--ssl-cert=" + (folder_ / "server.pem").string(),
        "--ssl-key=" + (folder_ / "server.key").string()};
    words.insert(words.end(), settings_.begin(), settings_.end());
    return words;
  }

  bool answers() const override {
    return run({"mariadb", "--no-defaults", "-u" + user_, "-S", socket(), "-e", "SELECT 1"})
               .first == 0;
  }

  const std::vector<std::string> settings_;
};

}  // namespace

DatabaseServer::DatabaseServer(std::string scheme, std::string user)
    : scheme_(std::move(scheme)), user_(std::move(user)), port_(free_port()) {
  copy_certificate();
  if (::geteuid() != 0) return;
  const auto [code, text] = certificates_.shell("chown -R nobody:nogroup " + folder_.str() + "");
  if (code != 0) throw std::runtime_error{"chown: " + text};
}

void DatabaseServer::copy_certificate() {
  for (const auto* const file : {"server.pem", "server.key"})
    fs::copy_file(certificates_[file], folder_ / file);
  fs::permissions(folder_ / "server.key", fs::perms::owner_read);
}

/// These servers refuse to run as root.
std::vector<std::string> DatabaseServer::as_nobody(std::vector<std::string> argv) const {
  if (::geteuid() != 0) return argv;
  std::vector<std::string> words{"setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups",
                                 "--pdeathsig=KILL"};
  words.insert(words.end(), argv.begin(), argv.end());
  return words;
}

std::pair<int, std::string> DatabaseServer::run(const std::vector<std::string>& argv) const {
  const TempDir outputs;
  const auto output = outputs / "out";
  Process process{as_nobody(argv),
                  {.directory = folder_.path(), .environment = {}, .output = output}};
  const int code = process.wait();
  return {code, content_of(output)};
}

std::string DatabaseServer::make_database() {
  auto name = fmt::format("d{}", ++databases_);
  sql(scheme_ == "postgresql" ? "postgres" : "mysql", "CREATE DATABASE " + name);
  return name;
}

std::string DatabaseServer::url(const std::string& database,
                                std::optional<std::uint16_t> port) const {
  return fmt::format("{}://{}@127.0.0.1:{}/{}", scheme_, user_, port.value_or(port_), database);
}

std::string DatabaseServer::url_with_password(const std::string& database,
                                              const std::string& password) const {
  return fmt::format("{}://shop:{}@127.0.0.1:{}/{}", scheme_, password, port_, database);
}

std::string DatabaseServer::log() const { return content_of(folder_ / "server.log"); }

void DatabaseServer::kill() {
  auto family = children_of(pid());
  process_->kill();
  for (const pid_t child : family) ::kill(child, SIGKILL);
}

void DatabaseServer::signal(int number) {
  process_->signal(number);
  for (const pid_t child : children_of(pid())) ::kill(child, number);
}

/// A signal stops the threads of a process one after another.
void DatabaseServer::stop() {
  signal(SIGSTOP);
  auto family = children_of(pid());
  family.push_back(pid());
  for (const pid_t process : family)
    while (!stands_still(process)) std::this_thread::yield();
}

void DatabaseServer::start() {
  const auto deadline = std::chrono::steady_clock::now() + database_patience;
  while (std::chrono::steady_clock::now() < deadline) {
    // After a kill it may refuse once, since a child has not ended yet.
    if (!process_ || !process_->running())
      process_.emplace(as_nobody(command()), ProcessOptions{.directory = folder_.path(),
                                                            .environment = {},
                                                            .output = folder_ / "server.log"});
    if (answers()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds{50});  // it tells nobody when it is ready
  }
  throw std::runtime_error{scheme_ + " does not start:\n" + log()};
}

std::unique_ptr<DatabaseServer> start_postgresql(std::vector<std::string> settings) {
  return std::make_unique<Postgresql>(std::move(settings));
}

std::unique_ptr<DatabaseServer> start_mariadb(std::vector<std::string> settings) {
  return std::make_unique<MariaDb>(std::move(settings));
}

}  // namespace sluice::test
