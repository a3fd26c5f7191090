import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.util.Callback;
import software.amazon.dynamodb.services.local.server.LocalDynamoDBRequestHandler;
import software.amazon.dynamodb.services.local.server.LocalDynamoDBServerHandler;

/**
 * DynamoDB Local in memory, for tests. It listens on the loopback interface only, and drops the databases of
 * finished tests; its own ServerRunner has no option for either. It prints its port, and ends with its standard
 * input, so that it never outlives its parent process.
 */
final class Engine extends Handler.Abstract {
    /** A database for each access key; null once its test has ended it with DELETE. */
    private final Map<String, Database> databases = new HashMap<>();

    private record Database(LocalDynamoDBRequestHandler requests, LocalDynamoDBServerHandler server) {}

    @Override
    public boolean handle(Request request, Response response, Callback callback) throws Exception {
        var authorization = String.valueOf(request.getHeaders().get("Authorization"));
        var accessKey = authorization.replaceFirst(".*Credential=([^/]*)/.*", "$1");
        var ends = request.getMethod().equals("DELETE");
        var database = ends ? ended(accessKey) : database(accessKey);
        if (database != null && !ends) {
            return database.server.handle(request, response, callback);
        }
        if (database != null) {
            // Its threads poll.
            database.requests.shutdown();
        }
        response.setStatus(ends ? HttpStatus.NO_CONTENT_204 : HttpStatus.GONE_410);
        callback.succeeded();
        return true;
    }

    private synchronized Database database(String accessKey) throws Exception {
        if (!databases.containsKey(accessKey)) {
            var requests = new LocalDynamoDBRequestHandler(0, true, null, false, false);
            var database = new Database(requests, new LocalDynamoDBServerHandler(requests, null));
            database.server.setServer(getServer());
            database.server.start();
            databases.put(accessKey, database);
        }
        return databases.get(accessKey);
    }

    private synchronized Database ended(String accessKey) {
        return databases.put(accessKey, null);
    }

    public static void main(String[] arguments) throws Exception {
        var server = new Server(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        server.setHandler(new Engine());
        server.start();
        System.out.println(server.getURI().getPort());
        while (System.in.read() >= 0) {}
        System.exit(0);
    }
}
